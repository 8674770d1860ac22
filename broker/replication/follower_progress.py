"""The log end offsets of a partition's followers, which the leader learns from their fetches.

Which of them are in sync is not decided here. A leader that is the only replica does not need this.
"""

from collections.abc import Iterable
from typing import Final

UNKNOWN_OFFSET: Final = -1


class FollowerProgress:
    """Log end offsets of the other replicas; one that has not fetched yet has -1."""

    __slots__ = ("_ends",)

    def __init__(self, followers: Iterable[int], before: "FollowerProgress | None" = None) -> None:
        """`before`: the progress so far, kept for those that stay followers."""
        known: dict[int, int] = {} if before is None else before._ends
        self._ends: dict[int, int] = {
            replica: known.get(replica, UNKNOWN_OFFSET) for replica in followers
        }

    def __contains__(self, replica: int) -> bool:
        return replica in self._ends

    def note(self, replica: int, end_offset: int) -> None:
        """Note that a follower has everything below `end_offset`."""
        self._ends[replica] = end_offset

    def lowest(self, isr: Iterable[int], own_end: int) -> int:
        """Return the least log end offset of the leader (`own_end`) and the followers in `isr`."""
        lowest = own_end
        for replica in isr:
            end = self._ends.get(replica)
            if end is not None and end < lowest:
                lowest = end
        return lowest
