"""Writes the markers of a transaction to all of its partitions, and reports when all have them.

Rules (Kafka's TransactionMarkerChannelManager)

* A decision in `__transaction_state` is carried out, however long it takes: a marker that cannot be
  written now is retried, at first after `RETRY_S` seconds, then at doubled intervals. After a
  restart the coordinator begins again with all partitions; a second marker does no harm (S-TXN-2).
* A deleted partition needs no marker, nor does one in which the producer has written with a newer
  epoch: the transaction was ended there.
* If a partition has seen a newer coordinator epoch, this coordinator was replaced: the whole work
  is given up, and the newer coordinator does it.
* Markers are written `MARKERS_PER_TURN` at a time, so that a transaction of a thousand partitions
  does not block the event loop.

Pure except for the `MarkerWriter`, which appends.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.deadlines import Deadlines
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.waits import Signal

logger = logging.getLogger(__name__)

RETRY_S: Final = 0.1
LONGEST_RETRY_S: Final = 6.4
"""Upper bound: a failed disk stays failed until the next start, while a loading coordinator is
ready within seconds."""
LONGEST_RETRY_ELSEWHERE_S: Final = 0.4
"""Upper bound while a partition finds its next leader: the transactional id cannot begin another
transaction before that leader has the marker."""
MARKERS_PER_TURN: Final = 64
"""Markers written between two turns of the loop: about three milliseconds."""

_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION)
_NOT_NEEDED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)


def retry_delay_s(attempt: int) -> float:
    """Return the seconds to wait after failed attempt number `attempt`, counted from 0."""
    return float(min(RETRY_S * 2 ** min(attempt, 10), LONGEST_RETRY_S))


class WorkKey(NamedTuple):
    """Identifies the transaction whose markers are written."""

    partition: int
    """The partition of `__transaction_state`."""
    transactional_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerStatistics:
    """Numbers for metrics and tests."""

    transactions: int
    """Transactions whose markers are being written."""
    written: int
    retried: int


class _Work:
    """The markers of one transaction."""

    __slots__ = ("ended", "left", "marker")

    def __init__(self, marker: Marker, left: Iterable[TopicPartition]) -> None:
        self.marker = marker
        self.left = set(left)
        self.ended: Signal[bool] = Signal()
        """Fired with True when all partitions have the marker, with False when it is given up."""


class MarkerDispatcher:
    """Writes the markers of ended transactions until every partition has them."""

    def __init__(self, writer: MarkerWriter, deadlines: Deadlines) -> None:
        self._writer = writer
        self._deadlines = deadlines
        self._works: dict[WorkKey, _Work] = {}
        self._written = 0
        self._retried = 0

    async def write(
        self, key: WorkKey, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> bool:
        """Write `marker` to all of `partitions`; replaces a work of `key`.

        Returns True when all have it, or False when the work is given up.
        """
        self.cancel(key)
        self._works[key] = work = _Work(marker, partitions)
        if not work.left:
            self._end(key, True)
        for number, tp in enumerate(sorted(work.left)):
            if number and number % MARKERS_PER_TURN == 0:
                await self._deadlines.sleep(0)
            if work.ended.fired:
                break
            code = begin(self._writer.write(tp, marker))
            if code.fired and code.value is ErrorCode.NONE:
                self._note_written(key, work, tp)
            else:
                begin(self._write_again(key, work, tp, code))
        return await work.ended

    def cancel(self, key: WorkKey) -> None:
        """Stop the work of `key`, if any; another coordinator does it."""
        self._end(key, False)

    def _end(self, key: WorkKey, complete: bool) -> None:
        work = self._works.pop(key, None)
        if work is not None:
            work.ended.fire(complete)

    def cancel_all(self, partition: int) -> None:
        """Stop all works of one partition of `__transaction_state`."""
        for key in [key for key in self._works if key.partition == partition]:
            self.cancel(key)

    def statistics(self) -> MarkerStatistics:
        """A snapshot."""
        return MarkerStatistics(
            transactions=len(self._works), written=self._written, retried=self._retried
        )

    async def _write_again(
        self, key: WorkKey, work: _Work, tp: TopicPartition, written: Signal[ErrorCode]
    ) -> None:
        """Write a marker until the partition has it; `written` is the first attempt."""
        for attempt in count():
            code = await written
            if self._works.get(key) is not work:
                return
            if code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                logger.warning("%s has seen a newer coordinator: gave up %s", tp, work.marker)
                self.cancel(key)
                return
            if code is ErrorCode.NONE or code in _NOT_NEEDED:
                if code is not ErrorCode.NONE:
                    logger.info("%s needs no %s: %s", tp, work.marker, code.name)
                self._note_written(key, work, tp)
                return
            self._retried += 1
            level = logging.DEBUG if attempt else logging.INFO
            logger.log(level, "%s cannot take %s yet: %s", tp, work.marker, code.name)
            delay_s = retry_delay_s(attempt)
            if code in _ELSEWHERE:
                delay_s = min(delay_s, LONGEST_RETRY_ELSEWHERE_S)
            await self._deadlines.sleep(delay_s)
            if self._works.get(key) is not work:
                return
            written = begin(self._writer.write(tp, work.marker))

    def _note_written(self, key: WorkKey, work: _Work, tp: TopicPartition) -> None:
        if self._works.get(key) is work:
            self._written += 1
            work.left.discard(tp)
            if not work.left:
                self._end(key, True)
