"""The flaws of answers; equal ones count as one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from protocol.errors import ErrorCode
from protocol.schema.values import Value

_PLACE = re.compile(r'File "[^"]*?([^/"]+/[^/"]+\.py)", line (\d+), in (\S+)')


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw that one frame caused."""

    what: str
    """Its kind: traceback, server error, silence, long turn, memory, stopped, stall, lost."""
    signature: str
    """Equal for the same fault."""
    where: str
    """Seed, chunk and number of the frame."""
    frame: str
    details: str = ""


@dataclass(slots=True)
class Findings:
    """The findings, by signature."""

    first: dict[tuple[str, str], Finding] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, finding: Finding, count: int = 1) -> None:
        """The first of its kind is kept whole."""
        key = (finding.what, finding.signature)
        self.first.setdefault(key, finding)
        self.counts[key] = self.counts.get(key, 0) + count

    def merge(self, other: "Findings") -> None:
        """Add the findings of another part of the run."""
        for key, finding in other.first.items():
            self.add(finding, other.counts[key])

    def __bool__(self) -> bool:
        return bool(self.first)

    def lines(self) -> list[str]:
        """Return lines for people, the most frequent finding first."""
        lines = []
        for key, count in sorted(self.counts.items(), key=lambda item: -item[1]):
            one = self.first[key]
            lines.append(f"{one.what} ({count}x): {one.signature}")
            lines.append(f"    {one.where}: {one.frame}")
            lines += [f"    {line}" for line in one.details.splitlines()[-12:]]
        return lines


def place_of(traceback: str) -> str:
    """Return the place of the error and its last line, by which two tracebacks are the same."""
    places = _PLACE.findall(traceback)
    last = traceback.strip().splitlines()[-1][:120] if traceback.strip() else ""
    here = ":".join(places[-1]) if places else traceback.strip().splitlines()[0][:120]
    return f"{here} {last}"


def error_codes(value: Any) -> set[int]:
    """Every code anywhere in an answer."""
    if isinstance(value, list | tuple):
        return _union(error_codes(one) for one in value)
    if not isinstance(value, Value):
        return set()
    codes: set[int] = set()
    for name in value._defaults:
        inside = getattr(value, name, None)
        if name.endswith("error_code"):
            codes.add(int(inside))  # type: ignore[arg-type]
        elif inside is not None:
            codes |= error_codes(inside)
    return codes


def is_server_error(answer: Any) -> bool:
    """Whether it says UNKNOWN_SERVER_ERROR anywhere."""
    return int(ErrorCode.UNKNOWN_SERVER_ERROR) in error_codes(answer)


def _union(sets: Iterable[set[int]]) -> set[int]:
    return {code for one in sets for code in one}
