"""Writes rows as a table, as columns, as JSON lines or as CSV."""

import csv
import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final, TextIO

from config.terminal import console, shown


def _text(value: Any) -> str:
    """Return a value as text for a person."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(_plain(value)) if isinstance(value, (list, dict)) else str(value)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _as_table(names: list[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    if not out.isatty():
        _as_columns(names, rows, out)
        return
    try:
        from rich.table import Table
    except ImportError:
        _as_csv(names, rows, out)
        return
    from rich.text import Text

    table = Table()
    for name in names:
        table.add_column(Text(shown(name)))
    for row in rows:
        table.add_row(*[Text(shown(_text(value))) for value in row])
    console().print(table)


def _as_columns(names: list[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    """Write columns for a pipe or a file: uncut, null as `-`, a line end within a text as `\\n`."""
    from tools.tables import columns_of_blanks

    lines = [[_cell(value) for value in row] for row in rows]
    out.writelines(line + "\n" for line in columns_of_blanks(names, lines))


def _cell(value: Any) -> str | int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return _text(value).replace("\n", "\\n")


def _as_json(names: list[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    for row in rows:
        record = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        print(json.dumps(record, ensure_ascii=False, default=str), file=out)


def _as_csv(names: list[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_text(value) for value in row] for row in rows)


WRITERS: Final = {"table": _as_table, "json": _as_json, "csv": _as_csv}
