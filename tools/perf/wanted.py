"""The limits of a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One run, as the command line describes it; a limit of None does not apply."""

    topic: str
    size: int
    """Bytes of each value that is sent."""
    records: int | None
    seconds: float | None
    rate: float | None
    """Records per second."""
