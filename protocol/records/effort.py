"""How much opening a batch may cost where it is opened: a bound on bytes and on Python steps."""

import sys
from typing import Final

_NO_LIMIT: Final = sys.maxsize


_PIECE: Final = 1024
"""Bytes that are inflated in the time that a piece takes which holds none: a frame, or a block."""


class EffortSpent(Exception):
    """The batch is more work than was granted here. It may be sound or not."""


class Effort:
    """The bytes and steps that are left; without arguments there is no bound."""

    __slots__ = ("bytes", "steps")

    def __init__(self, *, bytes: int = _NO_LIMIT, steps: int = _NO_LIMIT) -> None:
        self.bytes = bytes
        """Uncompressed bytes that may still be looked at."""
        self.steps = steps
        """Records or record headers that may still be gone through one by one, which holds the
        interpreter's lock. What numpy or a slice does for many at once does not count."""

    def spend_bytes(self, count: int) -> None:
        """Take `count` bytes off what is left. Raises EffortSpent when it is less."""
        self.bytes -= count
        if self.bytes < 0:
            raise EffortSpent

    def spend_piece(self, size: int) -> None:
        """Take an inflated piece of `size` bytes off what is left. Raises EffortSpent."""
        self.spend_bytes(size + _PIECE)

    def spend_steps(self, count: int) -> None:
        """Take `count` steps off what is left. Raises EffortSpent when it is less."""
        self.steps -= count
        if self.steps < 0:
            raise EffortSpent
