"""Writes rows as lines in the format of Kafka's tool, or as JSON objects with the same names.

A printer hands over many rows at a time, as tuples with the names of their fields: a dump of a big
log is mostly writing, so one write has thousands of lines.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from tools.dump_log.problems import Problems

Row = Sequence[Any]


class Output(Protocol):
    """The interface that printers write to."""

    problems: Problems
    is_json: bool

    def begin(self, file: Path) -> None:
        """Begin a file; the next rows belong to it."""

    def rows(self, names: Sequence[str], rows: Iterable[Row]) -> None:
        """Write rows that have the same fields; None is a field without a value."""

    def lines(self, lines: Sequence[str]) -> None:
        """Write lines that are already formatted (for JSON: objects without the file's name)."""

    def say(self, text: str) -> None:
        """Write a sentence about the file."""


class TextOutput:
    """Writes a line `name: value name: value` per row."""

    is_json = False

    def __init__(self, out: TextIO, problems: Problems) -> None:
        self._out = out
        self.problems = problems

    def begin(self, file: Path) -> None:
        """Write Kafka's heading."""
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
        """Write the problems to `errors`."""
        self._out.flush()
        for line in self.problems.lines():
            print(line, file=errors)


class JsonOutput:
    """Writes one object per row, each with the name of its file."""

    is_json = True

    def __init__(self, out: TextIO, problems: Problems) -> None:
        self._out = out
        self.problems = problems
        self._prefix = ""

    def begin(self, file: Path) -> None:
        """Note the file's name, with which each of its objects begins."""
        self._prefix = f'{{"file": {json.dumps(file.name)}, '

    def rows(self, names: Sequence[str], rows: Iterable[Row]) -> None:
        """See Output."""
        self.lines([json.dumps(dict(zip(names, row, strict=True))) for row in rows])

    def lines(self, lines: Sequence[str]) -> None:
        """Write objects; put the file's name before their first field."""
        if lines:
            prefix = self._prefix
            self._out.write("".join([f"{prefix}{line[1:]}\n" for line in lines]))

    def say(self, text: str) -> None:
        """See Output."""
        self.lines([json.dumps({"text": text})])

    def end(self, errors: TextIO) -> None:
        """Write the problems as objects too, after all others."""
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
