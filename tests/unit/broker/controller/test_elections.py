"""The cases of Kafka's PartitionLeaderElectionAlgorithmsTest and PartitionStateMachineTest."""

import pytest

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.elections import (
    Elected,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_reassignment,
    preferred_leader,
)


def current(leader: int, *isr: int, recovering: bool = False) -> LeaderAndIsr:
    return LeaderAndIsr(leader, isr, 5, 9, 3, recovering)


def elected(leader: int, *isr: int, recovering: bool = False) -> LeaderAndIsr:
    """One leader epoch later; the version is the tree's matter."""
    return LeaderAndIsr(leader, isr, 6, 9, 3, recovering)


@pytest.mark.parametrize(
    ("replicas", "now", "alive", "unclean", "outcome"),
    [
        # the first live one in sync, whatever the old leader was
        ((2, 4), current(2, 2, 4), {4}, False, Elected(elected(4, 4), (4,))),
        ((2, 4), current(-1, 2, 4), {2, 4}, False, Elected(elected(2, 2, 4), (2, 4))),
        ((1, 2, 3), current(1, 3, 2), {2, 3}, False, Elected(elected(2, 3, 2), (2, 3))),
        # nobody in sync lives
        ((2, 4), current(2, 2), {4}, False, Elected(None, (4,), False)),
        ((2, 4), current(2, 2), {4}, True, Elected(elected(4, 4, recovering=True), (4,), True)),
        (
            (2, 3, 4),
            current(2, 2),
            {4, 3},
            True,
            Elected(elected(3, 3, recovering=True), (3, 4), True),
        ),
        # clean if it can be, even if unclean is allowed
        ((2, 4), current(2, 2, 4), {4}, True, Elected(elected(4, 4), (4,))),
        # nobody lives
        ((2, 4), current(2, 2), set(), True, Elected(None, ())),
        # a leader that has not recovered yet stays so
        (
            (2, 4),
            current(2, 2, recovering=True),
            {2},
            False,
            Elected(elected(2, 2, recovering=True), (2,)),
        ),
    ],
)
def test_a_partition_without_a_leader(
    replicas: tuple[int, ...],
    now: LeaderAndIsr,
    alive: set[int],
    unclean: bool,
    outcome: Elected,
) -> None:
    assert leader_for_offline(replicas, now, alive, unclean_allowed=unclean) == outcome


@pytest.mark.parametrize(
    ("target", "now", "alive", "leader"),
    [
        ((2, 4), current(2, 2, 4), {4}, 4),
        ((2, 4), current(2, 2), {4}, None),
        ((2, 4), current(2), {2, 4}, None),
        ((4, 5), current(1, 1, 4, 5), {1, 4, 5}, 4),
    ],
)
def test_a_partition_that_is_reassigned(
    target: tuple[int, ...], now: LeaderAndIsr, alive: set[int], leader: int | None
) -> None:
    found = leader_for_reassignment(target, now, alive)
    assert found.recipients == target
    assert found.leadership == (None if leader is None else elected(leader, *now.isr))


@pytest.mark.parametrize(
    ("replicas", "now", "alive", "able"),
    [
        ((2, 4), current(4, 2, 4), {2, 4}, True),
        ((2, 4), current(4, 4), {2, 4}, False),
        ((2, 4), current(4, 2, 4), {4}, False),
        ((2, 4), current(4), set(), False),
        ((), current(4), {4}, False),
    ],
)
def test_the_preferred_replica(
    replicas: tuple[int, ...],
    now: LeaderAndIsr,
    alive: set[int],
    able: bool,
) -> None:
    found = preferred_leader(replicas, now, alive)
    assert found.recipients == replicas
    assert found.leadership == (elected(2, *now.isr) if able else None)


@pytest.mark.parametrize(
    ("now", "alive", "shutting_down", "outcome"),
    [
        (current(2, 2, 4), {2, 4}, {2}, Elected(elected(4, 4), (2, 4))),
        (current(2, 2), {2, 4}, {2}, Elected(None, (2, 4))),
        (current(2, 2, 4), {2, 4}, {2, 4}, Elected(None, (2, 4))),
        (current(2, 2, 4), {2}, {2}, Elected(None, (2,))),
    ],
)
def test_a_leader_that_shuts_down(
    now: LeaderAndIsr, alive: set[int], shutting_down: set[int], outcome: Elected
) -> None:
    assert leader_for_controlled_shutdown((2, 4), now, alive, shutting_down) == outcome
