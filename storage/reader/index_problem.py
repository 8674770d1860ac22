"""A problem of an index, as a value that `index_check` returns and tools show."""

from dataclasses import dataclass
from enum import StrEnum


class IndexFlaw(StrEnum):
    """The kind of a problem."""

    CORRUPT = "corrupt"
    OFFSET_MISMATCH = "offset mismatch"
    TIMESTAMP_MISMATCH = "timestamp mismatch"
    OUT_OF_ORDER = "timestamps out of order"
    OFFSET_NOT_FOUND = "offset not found in the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProblem:
    """One finding."""

    flaw: IndexFlaw
    path: str
    detail: str = ""
    index_value: int | None = None
    """Offset or timestamp of the entry."""
    log_value: int | None = None
    """The offset or timestamp that the log has there; -1: none."""

    @property
    def is_padding(self) -> bool:
        """Whether the index has its pre-sized length, as the active segment's has."""
        return self.flaw is IndexFlaw.CORRUPT and "ends in zeros" in self.detail

    def __str__(self) -> str:
        return f"{self.path}: {self.flaw}" + (f": {self.detail}" if self.detail else "")
