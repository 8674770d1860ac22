"""The states of a classic group and the steps between them (Kafka's `ClassicGroupState`).

A step that is missing in the table is a bug of the caller and raises `InvalidGroupTransition`.
"""

from collections.abc import Mapping
from enum import Enum


class GroupState(Enum):
    """The state of a group; the value is the name that Kafka shows."""

    EMPTY = "Empty"
    """No members; perhaps committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for all members to (re)join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All joined; waiting for the leader's assignment."""
    STABLE = "Stable"
    """Every member may fetch its assignment."""
    DEAD = "Dead"
    """Being removed, or this broker no longer leads the group's partition."""


VALID_PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


class InvalidGroupTransition(Exception):
    """The table has no such step: a bug of the caller."""
