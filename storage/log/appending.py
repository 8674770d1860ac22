"""An append between its decision and its effect.

`Log.begin_append` decides (offsets, segment, producer state), `PendingAppend.write` puts the bytes
into the file, `Log.complete_append` makes them count. Only the middle step may run in a thread, so
that a big batch's checksum, a look at its records and a write that the kernel throttles do not stop
the event loop. It
sees what was taken at the beginning, an open file and a position, and nothing of the log. It never
raises: what went wrong is told by `complete_append`, on the owner's side, where the log directory
can be taken offline.
"""

from collections.abc import Sequence
from typing import Any

from protocol.errors import KafkaError
from protocol.records.batch import BatchHeader, TimestampType, set_max_timestamp
from storage.filesystem import File
from storage.log.opening import Opened, Opening
from storage.log.results import AppendInfo
from storage.log.segment import LogSegment
from storage.log.validation import Bytes


class PendingAppend:
    """One append under way. Made by `Appender` only; nothing else changes the log until it is done.

    Positions and sizes are bytes.
    """

    __slots__ = (
        "_file",
        "_position",
        "data",
        "error",
        "headers",
        "info",
        "is_begun",
        "opening",
        "refused",
        "segment",
        "settled",
    )

    def __init__(
        self,
        data: Bytes,
        headers: Sequence[BatchHeader],
        segment: LogSegment,
        info: AppendInfo,
        opening: Opening | None = None,
    ) -> None:
        """Raises OSError when the segment's file has to be opened and cannot be."""
        self.data = data
        self.headers = headers
        """Of the batches in `data`, in order."""
        self.segment = segment
        self.info = info
        """What the append will answer."""
        self.opening = opening
        """What was left to be looked at; see `LeaderValidator`."""
        self.settled = False
        """True: there is nothing to write (a duplicate, or no whole batch)."""
        self.is_begun = False
        """`write` was called."""
        self.error: OSError | None = None
        self.refused: KafkaError | None = None
        """What is wrong with the batch: nothing was written."""
        self._file: File = segment.opened_file or segment.file
        self._position = segment.size

    @property
    def size(self) -> int:
        """Bytes that `write` has to put down: small ones need no thread."""
        return 0 if self.settled else len(self.data)

    def write(self) -> None:
        """Check what was left unchecked and write. May block; never raises."""
        self.is_begun = True
        if self.settled:
            return
        try:
            if self.opening is None or self._is_sound(self.opening):
                self._file.pwrite(self.data, self._position)
        except OSError as error:
            self.error = error

    def _is_sound(self, opening: Opening) -> bool:
        """Look at the records; then the header says when the latest of them is from."""
        found = opening.attempt()
        if not isinstance(found, Opened):
            self.refused = found
            return False
        header = self.headers[0]
        if found.max_timestamp != header.max_timestamp:
            data: Any = self.data  # writable: it was given its offsets
            set_max_timestamp(data, 0, header, TimestampType.CREATE_TIME, found.max_timestamp)
        return True


def settled(info: AppendInfo, segment: LogSegment) -> PendingAppend:
    """An append that was answered without writing. Raises OSError."""
    pending = PendingAppend(b"", (), segment, info)
    pending.settled = True
    return pending
