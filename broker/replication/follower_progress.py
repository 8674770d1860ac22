"""How far a partition's followers are, which the leader learns from their fetches.

A fetch at offset n says that the follower has everything below n. It is *caught up* while its end
is the leader's, or was not long ago: the time that counts (`caught_up_at`) is that of

* a fetch at the leader's log end or beyond; or
* the fetch before, if this one reaches the log end that the leader had then. A follower that gets a
  full answer to every fetch while producers go on writing is never at the log end when it asks, but
  it is never further behind than one fetch.

Which replicas are in sync is not decided here but in `isr`. A leader that is the only replica does
not need this. After Kafka's `Replica` and `ReplicaState`.
"""

import math
from collections.abc import Collection, Iterable
from typing import Final

from broker.replication.isr import ClusterRules

UNKNOWN_OFFSET: Final = -1
NEVER: Final = -math.inf


class Follower:
    """One follower as its leader knows it. Offsets are absolute, times monotonic seconds."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "end_offset",
        "fetched_at",
        "leader_end",
        "start_offset",
    )

    def __init__(self) -> None:
        self.end_offset = UNKNOWN_OFFSET
        """The follower has everything below it; -1 before its first fetch."""
        self.start_offset = UNKNOWN_OFFSET
        """The start of the follower's log."""
        self.leader_end = UNKNOWN_OFFSET
        """The leader's log end at its last fetch."""
        self.fetched_at = NEVER
        self.caught_up_at = NEVER
        """The latest time at which it is known to have had all that the leader had."""
        self.broker_epoch = -1
        """The epoch of its broker at its last fetch; -1 if that is not known."""

    def note(
        self, end_offset: int, start_offset: int, leader_end: int, now: float, broker_epoch: int
    ) -> None:
        """Note a fetch at `end_offset`, while the leader's log ended at `leader_end`."""
        if end_offset >= leader_end:
            self.caught_up_at = now
        elif end_offset >= self.leader_end and self.fetched_at > self.caught_up_at:
            self.caught_up_at = self.fetched_at
        self.end_offset = end_offset
        self.start_offset = start_offset
        if leader_end > self.leader_end:
            self.leader_end = leader_end
        self.fetched_at = now
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now: float, lag_time_s: float) -> bool:
        """Whether it was at the log end at most `lag_time_s` ago."""
        return self.end_offset == leader_end or now - self.caught_up_at <= lag_time_s

    def restart(self, *, in_sync: bool, leader_end: int, now: float, new_leader: bool) -> None:
        """A leader epoch begins; `new_leader`: another broker led before.

        A replica in sync gets `replica.lag.time.max.ms` from now on to show that it still is. A new
        leader does not know how far its followers are.
        """
        self.caught_up_at = now if in_sync else NEVER
        if new_leader:
            self.end_offset = self.start_offset = self.leader_end = UNKNOWN_OFFSET
            self.fetched_at = NEVER
            self.broker_epoch = -1
        else:
            self.leader_end = leader_end
            self.fetched_at = now if in_sync else NEVER


class FollowerProgress:
    """The other replicas of a partition that is led here."""

    __slots__ = ("_followers",)

    def __init__(self, followers: Iterable[int], before: "FollowerProgress | None" = None) -> None:
        """`before`: the progress so far, kept for those that stay followers."""
        self._followers: dict[int, Follower] = {}
        for replica in followers:
            known = None if before is None else before.get(replica)
            self._followers[replica] = known or Follower()

    def __contains__(self, replica: int) -> bool:
        return replica in self._followers

    def get(self, replica: int) -> Follower | None:
        """The follower on a broker; None if that has no replica."""
        return self._followers.get(replica)

    def items(self) -> Iterable[tuple[int, Follower]]:
        """All followers, by broker id."""
        return self._followers.items()

    def restart(
        self, in_sync: Collection[int], *, leader_end: int, now: float, new_leader: bool
    ) -> None:
        """A leader epoch begins: see `Follower.restart`."""
        for replica, follower in self._followers.items():
            follower.restart(
                in_sync=replica in in_sync, leader_end=leader_end, now=now, new_leader=new_leader
            )

    def lowest(
        self, in_sync: Collection[int], own_end: int, rules: ClusterRules | None = None
    ) -> int:
        """Return the least log end of the leader (`own_end`) and of the replicas that count.

        Those are the ones in `in_sync`, and by `rules` also the caught-up ones that are about to
        join: if the high watermark passed them, they would fall behind it again and never join.
        """
        lowest = own_end
        now: float | None = None
        for replica, follower in self._followers.items():
            if follower.end_offset >= lowest:
                continue
            if replica not in in_sync:
                if rules is None:
                    continue
                if now is None:
                    now = rules.monotonic()
                if not (
                    follower.is_caught_up(own_end, now, rules.lag_time_s)
                    and rules.may_join(replica)
                ):
                    continue
            lowest = follower.end_offset
        return lowest

    def lagging(
        self, in_sync: Collection[int], leader_end: int, rules: ClusterRules
    ) -> tuple[int, ...]:
        """Return the replicas of `in_sync` that are not caught up."""
        now = rules.monotonic()
        return tuple(
            replica
            for replica, follower in self._followers.items()
            if replica in in_sync and not follower.is_caught_up(leader_end, now, rules.lag_time_s)
        )
