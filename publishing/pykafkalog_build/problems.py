"""Reasons why files cannot be published, as values, so that one build reports all of them."""

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One place in a file."""

    line: int
    reason: str


class CannotPublish(Exception):
    """A wheel of the sources would be wrong; the text has a line for each problem."""


class CannotRewrite(Exception):
    """One file's problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"line {line}: {reason}" for line, reason in problems))
        self.problems = tuple(problems)
