"""Tables for a person and for a program.

A terminal gets a table that folds what is too long for it, and numbers with separators. What is no
terminal (a pipe, a file) gets the same rows in columns of blanks: nothing cut, nothing decorated,
numbers as they are, `-` where there is nothing.
"""

import sys
from collections.abc import Iterable, Sequence

Cell = str | int | None
"""What stands in a field; None is shown as `-`."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Columns that hold numbers are aligned to the right."""
    body = [list(row) for row in rows]
    if sys.stdout.isatty():
        _for_people(columns, body)
    else:
        _for_programs(columns, body)


def number(value: int) -> str:
    """With separators where a person reads it."""
    return f"{value:,}" if sys.stdout.isatty() else str(value)


def _is_number(body: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], int) for row in body)


def _for_people(columns: Sequence[str], body: Sequence[Sequence[Cell]]) -> None:
    from rich.markup import escape
    from rich.table import Column, Table

    from tools.console import console

    table = Table(
        *(
            Column(name, overflow="fold", justify="right" if _is_number(body, index) else "left")
            for index, name in enumerate(columns)
        )
    )
    for row in body:
        table.add_row(*(escape(_text(cell, separators=True)) for cell in row))
    console().print(table)


def _for_programs(columns: Sequence[str], body: Sequence[Sequence[Cell]]) -> None:
    lines = [list(columns), *([_text(cell) for cell in row] for row in body)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    right = [_is_number(body, index) for index in range(len(columns))]
    for line in lines:
        fields = (
            text.rjust(width) if to_the_right else text.ljust(width)
            for text, width, to_the_right in zip(line, widths, right, strict=True)
        )
        print("  ".join(fields).rstrip())


def _text(cell: Cell, *, separators: bool = False) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int):
        return f"{cell:,}" if separators else str(cell)
    return cell or "-"
