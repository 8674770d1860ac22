"""Why a file cannot be published: as values, so that one build tells of all of them."""

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One place in a file."""

    line: int
    reason: str


class CannotPublish(Exception):
    """The sources hold something that a wheel would get wrong; the text has a line for each."""


class CannotRewrite(Exception):
    """One file's problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"line {line}: {reason}" for line, reason in problems))
        self.problems = tuple(problems)
