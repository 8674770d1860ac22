"""What is wrong with the files that were dumped: taken down on the way, told at the end.

In Kafka's words where Kafka's tool has some, under its headings and in its order, so that both can
be compared line by line; what only this tool notices comes behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Heading(Enum):
    """Kinds of problems in the order of their telling: (text, is it damage?)."""

    INDEX_MISMATCH = "Mismatches in :{file}", True
    TIME_MISMATCH = "Found timestamp mismatch in :{file}", True
    TIME_ORDER = "Found out of order timestamp in :{file}", True
    TIME_NOT_FOUND = "The following indexed offsets are not found in :{file}", True
    GAP = "Non-consecutive offsets in {file}", False
    """Compaction makes them; nothing is lost by itself."""
    CHECKSUM = "Batches with a wrong checksum in {file}", True
    RECORDS = "Batches whose records cannot be read in {file}", True
    INDEX = "Index problems in {file}", True
    TAIL = "Not a whole number of batches in {file}", True
    CONTENT = "Cannot be read: {file}", True
    UNKNOWN = "Ignoring unknown file {file}", True

    def __init__(self, text: str, is_damage: bool) -> None:
        self.text = text
        self.is_damage = is_damage


@dataclass(frozen=True, slots=True)
class Problem:
    """One of them; `line` as it stands under the heading, unindented."""

    heading: Heading
    file: Path
    line: str


class Problems:
    """All of a run."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def add(self, heading: Heading, file: Path, line: str) -> None:
        """Take one down."""
        self._found.append(Problem(heading, file, line))

    @property
    def is_damaged(self) -> bool:
        """Whether any is more than a note."""
        return any(problem.heading.is_damage for problem in self._found)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def lines(self) -> Iterator[str]:
        """The text: a heading per kind and file, the problems indented below it."""
        for heading in Heading:
            by_file: dict[Path, list[str]] = {}
            for problem in self._found:
                if problem.heading is heading:
                    by_file.setdefault(problem.file, []).append(problem.line)
            for file, lines in by_file.items():
                yield heading.text.format(file=file.absolute())
                # Kafka forgot to indent these.
                indent = "" if heading is Heading.TIME_NOT_FOUND else "  "
                yield from (f"{indent}{line}" for line in lines)
