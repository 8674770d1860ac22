r"""Escapes in words of a command line: `\t`, `\n`, `\r`, `\0`, `\xHH` and `\\`, as in kcat."""

import re
from typing import Final

from tools.errors import CommandError

ESCAPES: Final = {r"\n": b"\n", r"\t": b"\t", r"\r": b"\r", r"\0": b"\0", r"\\": b"\\"}
PATTERN: Final = r"\\x[0-9a-fA-F]{2}|\\."
_PIECE: Final = re.compile(rf"{PATTERN}|\\|[^\\]+", re.DOTALL)


def escape(word: str) -> bytes | None:
    r"""Return what a piece that begins with a backslash means; None if that is not known."""
    if word.startswith(r"\x") and len(word) == 4:
        return bytes.fromhex(word[2:])
    return ESCAPES.get(word)


def unescaped(text: str) -> bytes:
    r"""Return the bytes that `text` stands for. Raises CommandError for an unknown escape."""
    pieces = []
    for word in _PIECE.findall(text):
        piece = escape(word) if word.startswith("\\") else word.encode()
        if piece is None:
            raise CommandError(f"{text!r}: {word} is no escape; \\\\ is a backslash")
        pieces.append(piece)
    return b"".join(pieces)
