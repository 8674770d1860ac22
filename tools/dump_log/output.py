"""Where the rows go: lines as Kafka's tool prints them, or JSON objects with the same names.

A printer hands over rows as tuples with the names of their fields, many at a time: writing is one
call per thousands of lines, because a dump of a big log is mostly writing.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from tools.dump_log.problems import Problems

Row = Sequence[Any]


class Output(Protocol):
    """What printers see."""

    problems: Problems
    is_json: bool

    def begin(self, file: Path) -> None:
        """The next rows are of this file."""

    def rows(self, names: Sequence[str], rows: Iterable[Row]) -> None:
        """Rows of equal fields; None is a field without a value."""

    def lines(self, lines: Sequence[str]) -> None:
        """Ready-made lines (in JSON: of objects without braces around the file)."""

    def say(self, text: str) -> None:
        """A sentence about the file."""


class TextOutput:
    """`name: value name: value`, a line per row."""

    is_json = False

    def __init__(self, out: TextIO, problems: Problems) -> None:
        self._out = out
        self.problems = problems

    def begin(self, file: Path) -> None:
        """Kafka's heading."""
        self._out.write(f"Dumping {file}\n")

    def rows(self, names: Sequence[str], rows: Iterable[Row]) -> None:
        """See Output."""
        template = " ".join(f"{name}: %s" for name in names)
        self.lines([template % tuple(map(_word, row)) for row in rows])

    def lines(self, lines: Sequence[str]) -> None:
        """See Output."""
        if lines:
            self._out.write("\n".join(lines))
            self._out.write("\n")

    def say(self, text: str) -> None:
        """See Output."""
        self._out.write(text + "\n")

    def end(self, errors: TextIO) -> None:
        """Tell the problems."""
        self._out.flush()
        for line in self.problems.lines():
            print(line, file=errors)


class JsonOutput:
    """One object per row, each with the name of its file."""

    is_json = True

    def __init__(self, out: TextIO, problems: Problems) -> None:
        self._out = out
        self.problems = problems
        self._prefix = ""

    def begin(self, file: Path) -> None:
        """Every object of it begins alike."""
        self._prefix = f'{{"file": {json.dumps(file.name)}, '

    def rows(self, names: Sequence[str], rows: Iterable[Row]) -> None:
        """See Output."""
        self.lines([json.dumps(dict(zip(names, row, strict=True))) for row in rows])

    def lines(self, lines: Sequence[str]) -> None:
        """Objects; the file is put in front of their first field."""
        if lines:
            prefix = self._prefix
            self._out.write("".join([f"{prefix}{line[1:]}\n" for line in lines]))

    def say(self, text: str) -> None:
        """See Output."""
        self.lines([json.dumps({"text": text})])

    def end(self, errors: TextIO) -> None:
        """The problems are objects as well, behind all others."""
        for problem in self.problems:
            row = {
                "file": problem.file.name,
                "problem": problem.heading.name,
                "damaged": problem.heading.is_damage,
                "text": problem.line,
            }
            self._out.write(json.dumps(row) + "\n")
        self._out.flush()


def _word(value: Any) -> Any:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
