"""Metadata as a journal on the broker's own `FileSystem`: for brokers whose disk is in memory.

Format: lines of text, each `<CRC-32C as 8 hex digits> <JSON>`. The first names the layout, every
other is one write: {"kept": [[path, value as base64, version], ...], "gone": [path, ...]}.

A line is valid if it is whole and its checksum is right. Bytes after the last valid line were torn
by a crash and are overwritten. A write returns once its line is synced. If most lines of a journal
are superseded by later ones, opening it rewrites it atomically.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final

from crc32c import crc32c

from broker.world.metadata_medium import MediumError, MediumFailed, NodeRow
from storage.filesystem import File, FileSystem

_LAYOUT: Final = 1
_REWRITE_FROM: Final = 256
"""A journal with fewer lines than this is never rewritten."""


class JournalMedia:
    """`MetadataMedia` on a file system."""

    file_name = "metadata.journal"

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs

    def open(self, path: str) -> "JournalMedium":
        """See `MetadataMedia`."""
        return JournalMedium(self._fs, path)


class JournalMedium:
    """A `MetadataMedium` that keeps a journal in one file. Raises MediumError."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path
        self._rows: dict[str, NodeRow] = {}
        self._file: File | None = None
        try:
            lines, self._end = self._read()
            self.fresh = not lines
            if self.fresh or lines > _REWRITE_FROM + 2 * len(self._rows):
                self._rewrite()
            self._file = fs.open(path)
        except OSError as error:
            raise MediumError(path, f"cannot be used: {error}") from error

    def _read(self) -> tuple[int, int]:
        """Replay the journal; return (valid lines, their bytes). Raises MediumError."""
        try:
            data = self._fs.read_bytes(self.path)
        except FileNotFoundError:
            return 0, 0
        lines = end = 0
        while (newline := data.find(b"\n", end)) >= 0:
            content = _checked(data[end:newline])
            if content is None:
                break
            if lines:
                self._replay(content)
            elif content.get("layout") != _LAYOUT:
                layout = content.get("layout")
                raise MediumError(self.path, f"has layout {layout}, this broker knows {_LAYOUT}")
            lines += 1
            end = newline + 1
        return lines, end

    def _replay(self, content: Any) -> None:
        for path in content["gone"]:
            self._rows.pop(path, None)
        for path, value, version in content["kept"]:
            self._rows[path] = NodeRow(path, b64decode(value), version)

    def _rewrite(self) -> None:
        pieces = [_line({"layout": _LAYOUT})]
        if self._rows:
            pieces.append(_change(list(self._rows.values()), ()))
        self._fs.write_atomic(self.path, pieces)
        self._end = sum(map(len, pieces))

    def load(self) -> list[NodeRow]:
        """See `MetadataMedium`."""
        return list(self._rows.values())

    def write(self, kept: Sequence[NodeRow], gone: Sequence[str]) -> None:
        """See `MetadataMedium`."""
        line = _change(kept, gone)
        try:
            if self._file is None:
                raise OSError("the journal is closed")
            if self._file.size() > self._end:
                self._file.truncate(self._end)  # drop the rest of a failed or torn write
            self._file.pwrite(line, self._end)
            self._file.fsync()
        except OSError as error:
            raise MediumFailed(self.path, str(error)) from error
        self._end += len(line)

    def close(self) -> None:
        """See `MetadataMedium`."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _change(kept: Sequence[NodeRow], gone: Sequence[str]) -> bytes:
    rows = [[row.path, b64encode(row.value).decode(), row.version] for row in kept]
    return _line({"kept": rows, "gone": list(gone)})


def _line(content: Any) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def _checked(line: bytes) -> Any:
    """The JSON value of a line; None if its checksum is wrong."""
    checksum, _, text = line.partition(b" ")
    return json.loads(text) if checksum == b"%08x" % crc32c(text) else None
