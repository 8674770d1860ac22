"""A bound on the cost of opening a batch, in uncompressed bytes and in Python steps."""

import sys
from typing import Final

_NO_LIMIT: Final = sys.maxsize


_PIECE: Final = 1024
"""The cost of a piece (a frame or a block) beside its bytes, in bytes that take as long."""


class EffortSpent(Exception):
    """Opening the batch costs more than the effort granted; whether it is valid is not known."""


class Effort:
    """The bytes and steps that are left; without arguments there is no bound."""

    __slots__ = ("bytes", "steps")

    def __init__(self, *, bytes: int = _NO_LIMIT, steps: int = _NO_LIMIT) -> None:
        self.bytes = bytes
        """Uncompressed bytes that may still be read."""
        self.steps = steps
        """Records or record headers that may still be checked one by one, under the interpreter
        lock. Those that numpy or a slice checks together do not count."""

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
