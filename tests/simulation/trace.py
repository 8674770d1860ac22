"""All events of a run, in order: to read them, and to compare two runs byte for byte."""

import hashlib
from collections.abc import Callable


class Trace:
    """A line for each event: virtual seconds, the actor, the act.

    Lines are always counted into `digest`; they are kept only when somebody wants to read them.
    """

    def __init__(self, now: Callable[[], float], *, keep: bool = False) -> None:
        self._now = now
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: list[str] | None = [] if keep else None

    def note(self, who: str, what: str) -> None:
        """Add a line with the time of now."""
        line = f"{self._now():12.6f} {who}: {what}"
        self._digest.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """The digest of all lines so far."""
        return self._digest.hexdigest()
