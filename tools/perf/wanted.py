"""How much is to be measured, and of what."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One run, as the command line asks for it. None: there is no such limit."""

    topic: str
    size: int
    """Bytes of each value that is sent."""
    records: int | None
    seconds: float | None
    rate: float | None
    """Records per second."""
