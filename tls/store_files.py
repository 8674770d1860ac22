"""Reads the files of stores. Clients may name them while a broker runs, so not any file will do."""

from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1024 * 1024
"""A trust store with every public authority has a quarter of it."""


def read_store_file(path: str) -> bytes:
    """Return the content of a regular file. Raises OSError, also if it is too large."""
    file = Path(path)
    if not file.is_file() and file.exists():
        raise OSError(0, "it is no regular file")
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(0, f"it has more than {MOST_BYTES} bytes, which no store has")
    return content
