"""The output of the rewriting of a group: normally one `.cleaned` segment."""

from typing import Any, Protocol

from storage.cleaner.request import CleanRequest
from storage.filesystem import FileSystem
from storage.index.transaction_index import Checksum
from storage.log.segment import LogSegment
from storage.log.segment_files import SegmentHome
from storage.paths import CLEANED_SUFFIX


class Output(Protocol):
    """The destination of a group's batches that are kept."""

    @property
    def base_offset(self) -> int:
        """The group's base offset."""
        ...

    @property
    def size(self) -> int:
        """How many bytes were written."""
        ...

    def add(self, data: "bytes | memoryview") -> None:
        """Append bytes, to be written by `write_down`."""
        ...

    def note(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Note that the next `size` of the added bytes are one batch."""
        ...

    def write_down(self) -> None:
        """Write what was added, at the end of a piece of the log. Raises OSError."""
        ...

    def finish(self, aborted: bytes, modified_ms: int) -> Checksum:
        """Complete the group; returns the checksum of its transaction index. Raises OSError.

        `aborted`: the entries of that index. `modified_ms`: the file's modification time.
        """
        ...

    def discard(self) -> None:
        """Remove everything that was written. Raises OSError."""
        ...

    def close(self) -> None:
        """Close the files without writing anything more."""
        ...


class CleanedWriter:
    """One `.cleaned` segment that is being filled."""

    __slots__ = ("_fs", "_noted", "_pieces", "_segment")

    def __init__(self, fs: FileSystem, request: CleanRequest, base_offset: int) -> None:
        """Removes files that an earlier attempt has left. Raises OSError."""
        self._fs = fs
        home = SegmentHome(
            fs,
            request.directory,
            index_interval=request.index_interval_bytes,
            index_size=request.segment_index_bytes,
        )
        self._segment = LogSegment(
            home, base_offset, size=0, created_ms=request.now_ms, state=CLEANED_SUFFIX
        )
        self._segment.files.remove()
        self._segment.ensure_files()
        self._pieces: list[Any] = []
        self._noted: list[tuple[int, int, int]] = []
        """Size, last offset and max timestamp of each batch that was added."""

    @property
    def base_offset(self) -> int:
        """The segment's base offset."""
        return self._segment.base_offset

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._segment.size

    def add(self, data: "bytes | memoryview") -> None:
        """Append bytes, to be written by `write_down`."""
        if len(data):
            self._pieces.append(data)

    def note(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Note that the next `size` of the added bytes are one batch."""
        self._noted.append((size, last_offset, max_timestamp))

    def write_down(self) -> None:
        """Write what was added to the files. Raises OSError."""
        if not self._pieces:
            return
        self._segment.write(b"".join(self._pieces))
        for size, last_offset, max_timestamp in self._noted:
            self._segment.note_batch(size, last_offset, max_timestamp)
        self._pieces, self._noted = [], []

    def finish(self, aborted: bytes, modified_ms: int) -> Checksum:
        """Complete, date and sync the files; returns the transaction index's checksum.

        Raises OSError.
        """
        segment = self._segment
        segment.aborted.index.extend(aborted)
        segment.become_inactive()
        segment.write_index_entries()
        self._fs.set_mtime_ms(segment.files.path, modified_ms)
        segment.flush()
        checksum = segment.aborted.index.checksum
        self.close()
        return checksum

    def discard(self) -> None:
        """Remove the files. Raises OSError."""
        self.close()
        self._segment.files.remove()

    def close(self) -> None:
        """Close the files without writing anything more; they may have been removed already."""
        self._segment.release()
