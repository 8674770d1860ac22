"""Opens produced batches that cannot be checked at a glance (`storage.log.opening`).

Rules

* The effort for a batch is not known in advance: nineteen kilobytes of zstd may hold thirty million
  records. So each is first tried in a thread, with an `Effort` of some ten milliseconds, most of
  which numpy and the codecs spend without the interpreter's lock. An honest batch never needs more.
* A batch that needs more is opened in a child process, at low priority and with bounded memory
  (`protocol.records.opened`), because a Python loop in a thread takes time from the event loop.
* The child process opens one batch at a time, so clients that send such batches delay only each
  other, and next is the client that has used it least lately (`broker.fairness`). `batch_looker`
  has a queue of its own for the child process, which serves the two in turn. No handler worker
  waits in either queue.
* Opening does not touch the log. The append follows, in its turn, with the result.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker.fairness import FairLock
from broker.world.workers import WorkerDied
from protocol.errors import ErrorCode, KafkaError
from protocol.records.effort import Effort
from storage.log.opening import Opened, Opening, RejectedRecords
from storage.waits import Lock, call, compute

log = logging.getLogger(__name__)

THREADS: Final = 2
THREAD_BYTES: Final = 16 << 20
"""Uncompressed bytes: fifteen times the default limit of a batch."""
THREAD_STEPS: Final = 20_000
"""Steps in Python, one per record of odd size: ten milliseconds."""

THREAD_MESSAGES: Final = 4_000
"""The same for formats 0 and 1, where every message takes a step."""
PROCESS_STEPS: Final = 2_000_000
"""Steps after which a batch is rejected as too large: some seconds of Python. No honest batch needs
them: records of one size, or with few headers, take no steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningStatistics:
    """Numbers for metrics and tests. Batches that were found to be invalid count as opened."""

    in_threads: int
    """Batches that were opened in a thread since the start."""
    in_processes: int
    """Batches for which a thread was not enough, opened in a child process."""
    too_much: int
    """Batches that were rejected because the child process gave up too."""
    waiting: int
    """Batches that wait for the child process, or are in it."""


class BatchOpener:
    """Opens produced batches in threads, and in a child process if that is not enough.

    One for all partitions. Event loop only.
    """

    def __init__(self, monotonic: Callable[[], float] = lambda: 0.0) -> None:
        """`monotonic` measures how long each client has used the child process."""
        self._threads = Lock(THREADS)
        self._process = FairLock(monotonic)
        self._in_threads = self._in_processes = self._too_much = 0

    async def open(self, opening: Opening) -> Opened:
        """Open a batch.

        Raises KafkaError; NOT_ENOUGH_REPLICAS if no child process could do it: all producers try
        again after it, and a -1 would be final.
        """
        steps = THREAD_MESSAGES if opening.is_old else THREAD_STEPS
        async with self._threads:
            found = await call(opening.attempt, Effort(bytes=THREAD_BYTES, steps=steps))
        if found is None:
            found = await self._open_in_child(opening)
            self._in_processes += 1
        else:
            self._in_threads += 1
        if isinstance(found, KafkaError):
            raise found
        return found

    async def _open_in_child(self, opening: Opening) -> Opened | KafkaError:
        """Open a batch in the child process when its turn comes."""
        effort = Effort(steps=PROCESS_STEPS)
        try:
            async with self._process:
                found = await compute(Opening.attempt, opening.copied(), effort)
        except WorkerDied as error:
            log.error("A produced batch could not be opened: its child process failed (%s)", error)
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                "The records could not be checked, as no process can be had for it. Try again.",
            ) from error
        if found is None:
            self._too_much += 1
            # Producers split a batch that is refused with this code.
            raise RejectedRecords(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The batch has more than {PROCESS_STEPS} records or record headers of odd sizes.",
            )
        return found

    def statistics(self) -> OpeningStatistics:
        """A snapshot."""
        return OpeningStatistics(
            in_threads=self._in_threads,
            in_processes=self._in_processes,
            too_much=self._too_much,
            waiting=self._process.busy + self._process.waiting,
        )
