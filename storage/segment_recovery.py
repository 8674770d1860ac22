"""Re-reading one segment: what in it is good, and everything beside it made to agree (S-REC-3).

Each batch is read and its checksum compared; the three indexes, producer state and leader epochs
are rebuilt from what is good. Nothing is cut here and no file but the indexes is changed: what
follows the last good batch, and the segments after this one, are the loader's to decide.

`storage.recovery` calls this.
"""

import logging

from protocol.records.batch import BatchHeader
from protocol.records.errors import RecordsError
from storage.epochs import LeaderEpochCache
from storage.log import replay
from storage.log.scan import Ended, Walk
from storage.log.segment import LogSegment
from storage.log.soundness import flaw_of
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


class SegmentRecovery:
    """Reads a segment from its first byte and makes everything beside it agree (S-REC-3)."""

    __slots__ = ("_epochs", "_producers", "_segment")

    def __init__(
        self, segment: LogSegment, producers: ProducerStateManager, epochs: LeaderEpochCache
    ) -> None:
        self._segment = segment
        self._producers = producers
        self._epochs = epochs

    def run(self) -> int:
        """Returns the bytes beyond the last good batch; they are still there. Raises OSError."""
        segment = self._segment
        total = segment.size
        segment.offset_index.truncate()
        segment.time_index.truncate()
        segment.txn_index.truncate()
        segment.restart()
        last = segment.base_offset - 1
        walk = Walk(segment.file, 0, total)
        for position, header, chunk, at in walk:
            flaw = flaw_of(header, chunk, at, base_offset=segment.base_offset, last_offset=last)
            if flaw is not None:
                _log.warning("Invalid batch in %s at %d: %s", segment.path, position, flaw)
                break
            last = header.last_offset
            try:
                segment.note_batch(header.size, last, header.max_timestamp)
                if header.magic >= 2:
                    self._note(header, chunk, at)
            except RecordsError as error:
                _log.warning(
                    "Found an invalid marker in %s at %d: %s", segment.path, position, error
                )
                segment.size = position
                break
            self._producers.map_end_offset = last + 1
        else:
            if walk.ended is not Ended.AT_END:
                _log.warning("%s ends at %d: %s", segment.path, walk.position, walk.ended)
        return total - segment.size

    def _note(self, header: BatchHeader, chunk: memoryview, at: int) -> None:
        """Epoch and producer of a good batch."""
        epoch = header.partition_leader_epoch
        if epoch >= 0:
            latest = self._epochs.latest_epoch
            if latest is None or epoch > latest:
                self._epochs.assign(epoch, header.base_offset)
        if header.producer_id >= 0:
            completed = replay.remember_again(self._producers, header, chunk, at)
            if completed is not None:
                replay.settle(self._producers, self._segment, completed)
