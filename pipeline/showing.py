"""Output of commands: tables for people, JSON for programs; decorated only on a terminal."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from config.terminal import console, marked

_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_STEP: Final = 1000


def size_of(size: float) -> str:
    """Return bytes in a decimal unit: 1234567 -> 1.2 MB."""
    unit = 0
    while abs(size) >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size:,.0f} B" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def print_table(
    title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], *, is_one_of_many: bool = False
) -> None:
    """Print a table; without a terminal, lines with tabs and plain numbers.

    There, too, the title stands above a table that is one of many, and an empty line after it.
    """
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        if is_one_of_many:
            print(f"# {title}")
        for row in (names, *([str(cell) for cell in row] for row in rows)):
            print("\t".join(row))
        if is_one_of_many:
            print()
        return
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for position, name in enumerate(names):
        numbers = bool(rows) and isinstance(rows[0][position], int)
        table.add_column(name, justify="right" if numbers else "left")
    for line in cells:
        table.add_row(*map(marked, line))
    console().print(table)


def print_json(value: Any) -> None:
    """Print a value on one line."""
    print(json.dumps(value), flush=True)


class StatusLine:
    """A line on standard error during a block; nothing without a terminal."""

    def __init__(self, text: str) -> None:
        self._status: Any = None
        if sys.stderr.isatty():
            self._status = console(stderr=True).status(marked(text))

    def say(self, text: str) -> None:
        """Replace the text."""
        if self._status is not None:
            self._status.update(marked(text))

    def __enter__(self) -> "StatusLine":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
