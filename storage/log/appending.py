"""An append between its decision and its effect.

`Appender.begin_append` decides (offsets, segment, producer state), `PendingAppend.write` writes the
bytes into the file, `Appender.complete_append` makes them part of the log. Only the middle step may
run in a thread, so that a big batch's checksum, the check of its records and a write that the
kernel throttles do not stop the event loop. It uses an open file and a position, and nothing else
of the log. It never raises: `complete_append` raises its error on the loop, where the log directory
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
    """One append in progress. Only `Appender` makes one; no other call changes the log meanwhile.

    Positions and sizes are bytes.
    """

    __slots__ = (
        "_file",
        "_position",
        "data",
        "error",
        "headers",
        "info",
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
        """The headers of the batches in `data`, in order."""
        self.segment = segment
        self.info = info
        """The result of `complete_append`."""
        self.opening = opening
        """The checks left to `write` (see `LeaderValidator`); None if there are none."""
        self.settled = False
        """True: there is nothing to write (a duplicate, or no whole batch)."""
        self.error: OSError | None = None
        self.refused: KafkaError | None = None
        """Why `write` refused the batch and wrote nothing."""
        self._file: File = segment.files.opened or segment.file
        self._position = segment.size

    @property
    def size(self) -> int:
        """How many bytes `write` writes; for few of them a thread costs more than it saves."""
        return 0 if self.settled else len(self.data)

    def write(self) -> None:
        """Do the checks of `opening`, then write. May block; never raises."""
        if self.settled:
            return
        try:
            if self.opening is None or self._is_sound(self.opening):
                self._file.pwrite(self.data, self._position)
        except OSError as error:
            self.error = error

    def _is_sound(self, opening: Opening) -> bool:
        """Check the records, and correct the header's max timestamp; False sets `refused`."""
        found = opening.attempt()
        if not isinstance(found, Opened):
            self.refused = found
            return False
        header = self.headers[0]
        if found.max_timestamp != header.max_timestamp:
            data: Any = self.data  # writable: its offsets were patched in place
            set_max_timestamp(data, 0, header, TimestampType.CREATE_TIME, found.max_timestamp)
        return True


def settled(info: AppendInfo, segment: LogSegment) -> PendingAppend:
    """An append that was answered without writing. Raises OSError."""
    pending = PendingAppend(b"", (), segment, info)
    pending.settled = True
    return pending
