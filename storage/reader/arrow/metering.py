"""Counts the bytes read of log directories, to show what a query has cost."""

from storage.filesystem import File, FileSystem
from storage.reader.read_only import ReadOnlyFile, ReadOnlyFileSystem


class MeteredFileSystem(ReadOnlyFileSystem):
    """A read-only file system that counts the bytes read from its files."""

    __slots__ = ("bytes_read",)

    def __init__(self, fs: FileSystem) -> None:
        super().__init__(fs)
        self.bytes_read = 0
        """Bytes read from all files since it was made, indexes included."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """As `ReadOnlyFileSystem` does."""
        return _MeteredFile(super().open(path, create=create, writable=writable), self)

    def read_bytes(self, path: str) -> bytes:
        """As `ReadOnlyFileSystem` does."""
        content = super().read_bytes(path)
        self.bytes_read += len(content)
        return content


class _MeteredFile(ReadOnlyFile):
    __slots__ = ("_meter",)

    def __init__(self, file: File, meter: MeteredFileSystem) -> None:
        super().__init__(file)
        self._meter = meter

    def pread(self, size: int, position: int) -> bytes:
        content = super().pread(size, position)
        self._meter.bytes_read += len(content)
        return content
