"""Tables for a person and for a program.

On a terminal, a table folds cells that are too long and shows numbers with separators. A pipe or
file gets the same rows in columns separated by blanks: nothing is cut or decorated, numbers have no
separators, and `-` stands for an empty cell.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from config.terminal import console, marked
from tools.magnitudes import size_of

Cell = str | int | None
"""The value of a cell; None is shown as `-`."""


class Size(int):
    """Bytes: shown as `1.2 MB` on a terminal, as a plain number elsewhere."""


class Coloured(str):
    """A word with a colour on a terminal: `colour` is rich's name of it, "" for none."""

    colour: str

    def __new__(cls, word: str, colour: str) -> "Coloured":
        """Make a cell from the word and its colour."""
        cell = super().__new__(cls, word)
        cell.colour = colour
        return cell


def size(amount: int | None) -> Size | None:
    """Make a cell of bytes; None if the amount is unknown (-1 in Kafka's answers)."""
    return None if amount is None or amount < 0 else Size(amount)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table; columns with numbers are aligned to the right."""
    body = [list(row) for row in rows]
    if sys.stdout.isatty():
        console().print(table_for_people(columns, body))
    else:
        print("\n".join(columns_of_blanks(columns, body)))


def number(value: int) -> str:
    """Return the number as text, with separators on a terminal."""
    return f"{value:,}" if sys.stdout.isatty() else str(value)


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun: `1 topic`, `12 topics`."""
    return f"{number(count)} {noun}" + ("" if count == 1 else "s")


def _is_number(body: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], int) for row in body)


def table_for_people(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, caption: str | None = None
) -> Any:
    """Return a table of rich, without edges, which would take some of the 80 columns."""
    from rich import box
    from rich.table import Column, Table

    body = [list(row) for row in rows]
    table = Table(
        *(
            Column(name, overflow="fold", justify="right" if _is_number(body, index) else "left")
            for index, name in enumerate(columns)
        ),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption=caption,
        caption_justify="left",
    )
    for row in body:
        table.add_row(*(_styled(cell, marked(_text(cell, separators=True))) for cell in row))
    return table


def _styled(cell: Cell, text: str) -> str:
    return f"[{cell.colour}]{text}[/]" if isinstance(cell, Coloured) and cell.colour else text


def columns_of_blanks(columns: Sequence[str], body: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield the lines of a table for programs."""
    lines = [list(columns), *([_text(cell) for cell in row] for row in body)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    right = [_is_number(body, index) for index in range(len(columns))]
    for line in lines:
        fields = (
            text.rjust(width) if to_the_right else text.ljust(width)
            for text, width, to_the_right in zip(line, widths, right, strict=True)
        )
        yield "  ".join(fields).rstrip()


def _text(cell: Cell, *, separators: bool = False) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, Size) and separators:
        return size_of(cell)
    if isinstance(cell, int):
        return f"{cell:,}" if separators else str(cell)
    return cell or "-"
