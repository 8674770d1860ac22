"""How far the followers of a partition have come, as their fetches tell its leader.

Who of them is in sync is not decided here. A leader that is the only replica needs none of this.
"""

from collections.abc import Iterable

from broker.replication.truncation import UNDEFINED_OFFSET


class FollowerProgress:
    """Log end offsets of the other replicas; one that has not fetched yet has -1."""

    __slots__ = ("_ends",)

    def __init__(self, followers: Iterable[int], before: "FollowerProgress | None" = None) -> None:
        """`before`: who stays a follower is as far as it was."""
        known: dict[int, int] = {} if before is None else before._ends
        self._ends: dict[int, int] = {
            replica: known.get(replica, UNDEFINED_OFFSET) for replica in followers
        }

    def __contains__(self, replica: int) -> bool:
        return replica in self._ends

    def note(self, replica: int, end_offset: int) -> None:
        """A follower has everything below `end_offset`."""
        self._ends[replica] = end_offset

    def lowest(self, isr: Iterable[int], own_end: int) -> int:
        """The least log end offset of the leader (`own_end`) and of the followers in `isr`."""
        lowest = own_end
        for replica in isr:
            end = self._ends.get(replica)
            if end is not None and end < lowest:
                lowest = end
        return lowest
