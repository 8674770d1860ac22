"""Where produced batches are opened that are more than a look (`storage.log.opening`).

Rules

* What a batch takes is not known before: nineteen kilobytes of zstd may hold thirty million
  records. So each is tried in a thread first, with an `Effort` of some ten milliseconds, most of
  which numpy and the codecs spend without the interpreter's lock. An honest batch never needs more.
* A batch that does (`EffortSpent`) is opened in a child process, at low priority, with bounded
  memory (`protocol.records.opened`): a loop in Python would take the event loop's time in a thread.
  There is one at a time, so whoever sends such batches all day waits in a line of their own; nobody
  else is in it (looks at what the log holds take turns with it, see `batch_looker`), and no handler
  worker waits with them (Produce goes on aside).
* Nothing of the log is touched. The append comes afterwards, in turn, with what was found.

Belongs to the event loop. One for all partitions.
"""

import logging
from dataclasses import dataclass
from typing import Final

import trio

from broker.world.workers import WorkerDied, Workers
from protocol.errors import ErrorCode, KafkaError
from protocol.records.effort import Effort, EffortSpent
from storage.log.opening import Opened, Opening, RejectedRecords

log = logging.getLogger(__name__)

THREADS: Final = 2
THREAD_BYTES: Final = 16 << 20
"""Uncompressed: fifteen times the largest batch by default."""
THREAD_STEPS: Final = 20_000
"""Records of odd sizes, gone through in Python: ten milliseconds."""

THREAD_MESSAGES: Final = 4_000
"""The same of messages of formats 0 and 1, each of which is Python."""
PROCESS_STEPS: Final = 2_000_000
"""The end of all patience, some seconds of Python: a batch that needs more is too large. No honest
one does: records of one size, or with few headers, take no steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningStatistics:
    """Numbers for metrics and tests."""

    in_threads: int
    """Batches opened in threads since the start, those included that needed more."""
    in_processes: int
    waiting: int
    """Batches that wait for a child process, or are in one."""


class BatchOpener:
    """See the module."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._threads = trio.CapacityLimiter(THREADS)
        self._process = trio.CapacityLimiter(1)
        self._in_threads = self._in_processes = self._waiting = 0

    async def open(self, opening: Opening) -> Opened:
        """In a thread. Raises KafkaError; EffortSpent when it is for `open_heavy`."""
        self._in_threads += 1
        steps = THREAD_MESSAGES if opening.is_old else THREAD_STEPS
        effort = Effort(bytes=THREAD_BYTES, steps=steps)
        found = await self._workers.in_thread(opening.attempt, effort, limiter=self._threads)
        if found is None:
            raise EffortSpent
        return _opened(found)

    async def open_heavy(self, opening: Opening) -> Opened:
        """In a child process, when it is this batch's turn. Raises KafkaError."""
        self._waiting += 1
        try:
            async with self._process:
                self._in_processes += 1
                found = await self._workers.in_process(_attempt, opening.copied())
        except WorkerDied as error:
            log.error("A produced batch could not be opened: its process died (%s)", error)
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The records could not be looked at"
            ) from error
        finally:
            self._waiting -= 1
        return _opened(found)

    def statistics(self) -> OpeningStatistics:
        """A snapshot."""
        return OpeningStatistics(
            in_threads=self._in_threads, in_processes=self._in_processes, waiting=self._waiting
        )


def _attempt(opening: Opening) -> Opened | KafkaError:
    found = opening.attempt(Effort(steps=PROCESS_STEPS))
    if found is None:
        # Producers split a batch that is told so.
        return RejectedRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch has more than {PROCESS_STEPS} records or record headers of odd sizes.",
        )
    return found


def _opened(found: Opened | KafkaError) -> Opened:
    """Raises KafkaError."""
    if isinstance(found, KafkaError):
        raise found
    return found
