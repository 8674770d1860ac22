"""Checkpoint files: small texts of numbers that are replaced whole, never changed in place.

Format (Kafka's CheckpointFile), all in ASCII digits, each line ended by a newline:

    0                          version
    <n>                        number of entries that follow
    <topic> <partition> <offset>      one per line (leader epochs: <epoch> <start offset>)

Guaranteed after a crash: the file is the old one or the new one (`storage.replaced_file`, or
`write_atomic`). An empty file, or one that ends after the version, has no entries, as in Kafka;
anything else malformed is a `CheckpointError` that names the line, and the caller decides what
follows from it (S-FL-3).

`read_entries`/`encode_entries`/`number` are shared with `storage.epochs`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from protocol.types import TopicPartition
from storage.errors import CheckpointError
from storage.filesystem import FileSystem

VERSION: Final = 0

Entry = TypeVar("Entry")


class OffsetCheckpoint:
    """One offset per partition of a log directory.

    Recovery points, log start offsets, high watermarks and cleaner positions are kept in this form.
    """

    __slots__ = ("_fs", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path

    def read(self) -> dict[TopicPartition, int]:
        """The offsets written last; empty when the file is absent or empty.

        Raises CheckpointError when the content is malformed, OSError when it cannot be read.
        """
        return dict(read_entries(self._fs, self.path, _parse_offset))

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the content; durable when this returns. Raises OSError."""
        self._fs.write_atomic(self.path, (encode_offsets(offsets.items()),))


def encode_offsets(offsets: Iterable[tuple[TopicPartition, int]]) -> bytes:
    """The bytes of a checkpoint of offsets."""
    return encode_entries(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets)


def encode_entries(entries: Iterable[str]) -> bytes:
    """The bytes of a checkpoint of ready-made entry lines (without newlines)."""
    lines = list(entries)
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()


def read_entries(
    fs: FileSystem, path: str, parse: Callable[[list[str]], Entry | None]
) -> Iterable[Entry]:
    """The entries of a checkpoint; `parse` gets a line's words and returns None if they are wrong.

    Raises CheckpointError, OSError. An absent file has no entries.
    """
    try:
        raw = fs.read_bytes(path)
    except FileNotFoundError:
        return []
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(path, 0, f"not text: {error}") from error
    if not lines:
        return []
    version = _number(path, 1, lines[0])
    if version != VERSION:
        raise CheckpointError(path, 1, f"unrecognised version {version}, expected {VERSION}")
    if len(lines) == 1:
        return []
    expected = _number(path, 2, lines[1])
    entries = []
    for number, line in enumerate(lines[2:], start=3):
        try:
            entry = parse(line.split())
        except ValueError:
            entry = None
        if entry is None:
            raise CheckpointError(path, number, f"malformed line {line!r}")
        entries.append(entry)
    if len(entries) != expected:
        raise CheckpointError(path, 2, f"expected {expected} entries but found {len(entries)}")
    return entries


def _parse_offset(words: list[str]) -> tuple[TopicPartition, int] | None:
    if len(words) != 3:
        return None
    return TopicPartition(words[0], number(words[1], bits=32)), number(words[2], bits=64)


def number(text: str, *, bits: int) -> int:
    """A number of that many bits, as Kafka's. Raises ValueError."""
    value = int(text)
    if not -1 << (bits - 1) <= value < 1 << (bits - 1):
        raise ValueError(f"{text} has more than {bits} bits")
    return value


def _number(path: str, line: int, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CheckpointError(path, line, f"malformed line {text!r}") from error
