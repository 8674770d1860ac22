"""Problems of the dumped files: collected on the way, printed at the end.

Problems that Kafka's tool finds too have its words, headings and order, so that both outputs can be
compared line by line; those that only this tool finds come after them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Heading(Enum):
    """Kinds of problems in the order of printing: (text, whether it is damage)."""

    INDEX_MISMATCH = "Mismatches in :{file}", True
    TIME_MISMATCH = "Found timestamp mismatch in :{file}", True
    TIME_ORDER = "Found out of order timestamp in :{file}", True
    TIME_NOT_FOUND = "The following indexed offsets are not found in :{file}", True
    GAP = "Non-consecutive offsets in {file}", False
    """Compaction makes gaps, so a gap alone is no damage."""
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
    """One problem; `line` is the text under the heading, not indented."""

    heading: Heading
    file: Path
    line: str


class Problems:
    """All problems of a run."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def add(self, heading: Heading, file: Path, line: str) -> None:
        """Add a problem."""
        self._found.append(Problem(heading, file, line))

    @property
    def is_damaged(self) -> bool:
        """Whether any problem is damage."""
        return any(problem.heading.is_damage for problem in self._found)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def lines(self) -> Iterator[str]:
        """Yield the text: a heading per kind and file, with its problems indented below."""
        for heading in Heading:
            by_file: dict[Path, list[str]] = {}
            for problem in self._found:
                if problem.heading is heading:
                    by_file.setdefault(problem.file, []).append(problem.line)
            for file, lines in by_file.items():
                yield heading.text.format(file=file.absolute())
                # Kafka does not indent these.
                indent = "" if heading is Heading.TIME_NOT_FOUND else "  "
                yield from (f"{indent}{line}" for line in lines)
