"""Log lines about what strangers do, as many as a person can read and no more."""

import logging
from typing import Any, Final

from storage.clock import Clock

LINES: Final = 20
LINES_PERIOD_S: Final = 10.0

logger = logging.getLogger(__name__)


class LimitedLines:
    """At most `LINES` lines in `LINES_PERIOD_S`; the next one says how many were left out."""

    __slots__ = ("_began", "_left_out", "_monotonic", "_written")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._began = float("-inf")
        self._written = 0
        self._left_out = 0

    def info(self, text: str, *values: Any) -> None:
        """Log a line at level INFO, if it is not one too many."""
        now = self._monotonic()
        if now - self._began >= LINES_PERIOD_S:
            if self._left_out:
                logger.info("%d more lines about connections were left out", self._left_out)
            self._began, self._written, self._left_out = now, 0, 0
        if self._written == LINES:
            self._left_out += 1
            return
        self._written += 1
        logger.info(text, *values)
