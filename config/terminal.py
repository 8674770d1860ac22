"""Text of strangers on a person's terminal.

Names, errors and headers come from clients, from files and from brokers, and may hold control
characters, which a terminal obeys: it would move the cursor, change its title, answer with
keystrokes. So on a terminal they are shown as `less` shows them: `^[` for escape, `<U+202E>` for
those that turn the direction of the text, `<9B>` for a byte that is not UTF-8. A pipe or a file
gets the bytes as they are.

`terminals_made_safe` does this for all that a program prints. Code that writes escape sequences of
its own (colours, progress) writes past it, to `unshown(stream)` or `console()`, and passes foreign
text through `shown`, `shown_line` or `marked` itself.
"""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, Final, TextIO, cast

_BEYOND: Final = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE: Final = re.compile(rf"[\x00-\x1f{_BEYOND}]")
_IN_LINES: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_BEYOND}]")
_DELETE: Final = 0x7F
_BYTES: Final = range(0xDC80, 0xDD00)
"""Bytes that are not UTF-8, as Python's `surrogateescape` keeps them."""


def shown_line(text: str) -> str:
    """Return the text without any control character: for a cell of a table, a line of a log."""
    return _IN_A_LINE.sub(_visible, text)


def shown(text: str) -> str:
    """Return the text without control characters but line ends and tabs."""
    return _IN_LINES.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= _DELETE:
        return f"^{chr(code ^ 64)}"
    return f"<{code - 0xDC00:02X}>" if code in _BYTES else f"<U+{code:04X}>"


class _Shown:
    """A text stream that shows control characters."""

    def __init__(self, stream: TextIO) -> None:
        self.unshown: Final = stream

    def write(self, text: str) -> int:
        self.unshown.write(shown(text))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unshown, name)


def unshown(stream: TextIO) -> TextIO:
    """Return the stream to which a program may write escape sequences of its own."""
    return cast(TextIO, getattr(stream, "unshown", stream))


def console(*, stderr: bool = False) -> Any:
    """Return a console of rich that colours only what is marked up."""
    from rich.console import Console

    file = unshown(sys.stderr if stderr else sys.stdout)
    return Console(file=file, highlight=False, emoji=False)


def marked(text: str) -> str:
    """Return foreign text as a line of rich's markup: its brackets and controls mean nothing."""
    from rich.markup import escape

    return escape(shown_line(text))


@contextmanager
def terminals_made_safe() -> Iterator[None]:
    """Within, standard output and error show control characters if they are a terminal.

    Elsewhere the bytes of names that are not UTF-8 are written as they are.
    """
    with ExitStack() as stack:
        if sys.stdout.isatty():
            stack.enter_context(redirect_stdout(cast(TextIO, _Shown(sys.stdout))))
        elif isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")
        if sys.stderr.isatty():
            stack.enter_context(redirect_stderr(cast(TextIO, _Shown(sys.stderr))))
        yield
