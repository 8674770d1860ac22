"""One file of record batches, read only: a segment's record file, or a KRaft snapshot.

There are two ways to read it: `batches` makes an object of every header, `frames` yields whole
chunks for the column functions. Both stop where the good part ends, and `ended` tells why.
"""

from collections.abc import Iterator

from storage.filesystem import FileSystem
from storage.log.scan import Ended, Walk
from storage.os_filesystem import OsFileSystem
from storage.reader.batch import Batch
from storage.reader.frames import FRAMES_CHUNK, Frames, FrameWalk
from storage.reader.read_only import ReadOnlyFileSystem


class RecordFileView:
    """One file. The object holds the state of its last walk, so it is for one thread."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path
        self.ended: Ended | None = None
        """Why the last walk over the batches stopped; None while it was not finished."""
        self.valid_bytes = 0
        """How many bytes the last walk found good."""

    @classmethod
    def at(cls, path: str, fs: FileSystem | None = None) -> "RecordFileView":
        """The view of any file; `fs` is only read (`ReadOnlyFileSystem`)."""
        return RecordFileView(ReadOnlyFileSystem(OsFileSystem() if fs is None else fs), path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    @property
    def size(self) -> int:
        """Bytes of the file. Raises OSError when there is none."""
        return self._fs.size(self.path)

    def zeros_behind(self, position: int, *, look_at: int | None = None) -> int:
        """Bytes from `position` to the end of the file if all are zeros, else 0. Raises OSError.

        With `look_at`, only so many of them are read, and the others are taken for the same.
        """
        file = self._fs.open(self.path, writable=False)
        try:
            size = file.size()
            end = size if look_at is None else min(size, position + look_at)
            for at in range(position, end, FRAMES_CHUNK):
                if any(file.pread(min(FRAMES_CHUNK, end - at), at)):
                    return 0
            return max(size - position, 0)
        finally:
            file.close()

    def batches(self, start: int = 0, limit: int | None = None) -> Iterator[Batch]:
        """Batches from byte `start` (a batch's first) on, as far as they are whole.

        With `limit`, those that lie whole in the first `limit` bytes. Raises OSError.
        """
        file = self._fs.open(self.path, writable=False)
        end = file.size()
        walk = Walk(file, start, end if limit is None else min(end, limit))
        try:
            for position, header, chunk, at in walk:
                yield Batch(position, header, chunk, at)
        finally:
            self.ended, self.valid_bytes = walk.ended, walk.position
            file.close()

    def frames(self, limit: int | None = None, *, chunk: int = FRAMES_CHUNK) -> Iterator[Frames]:
        """Chunks (of about `chunk` bytes) of whole batches, for the column functions.

        `limit` as for `batches`. Raises OSError.
        """
        file = self._fs.open(self.path, writable=False)
        end = file.size()
        walk = FrameWalk(file, 0, end if limit is None else min(end, limit), chunk=chunk)
        try:
            yield from walk
        finally:
            self.ended, self.valid_bytes = walk.ended, walk.position
            file.close()
