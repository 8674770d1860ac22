"""A record as a Python value."""

from typing import NamedTuple


class Record(NamedTuple):
    """One record of a batch of any magic; offset and timestamp (ms, -1 for none) are absolute.

    Header names that are not UTF-8 carry their bytes as surrogate escapes, which `builder` undoes.
    `attributes` is the record's own byte, without meaning in format 2.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    attributes: int = 0
