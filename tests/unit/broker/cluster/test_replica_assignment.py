import pytest

from broker.cluster.replica_assignment import ReplicaAssignment


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        # The cases of Kafka's ControllerContextTest: new replicas, fewer, others, back again.
        (((1, 2, 3), (), ()), (4, 5, 6), ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        (
            ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
            (7, 8, 9),
            ((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3)),
        ),
        (((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3)), (1, 2, 3), ((1, 2, 3), (), ())),
        (((1, 2, 3), (), ()), (2, 3, 5), ((2, 3, 5, 1), (5,), (1,))),
        (((2, 3, 5, 1), (5,), (1,)), (2, 4), ((2, 4, 3, 1), (4,), (3, 1))),
        (((1, 2), (), ()), (1, 2, 3), ((1, 2, 3), (3,), ())),
        (((1, 2, 3), (), ()), (2, 1), ((2, 1, 3), (), (3,))),
        (((1, 2, 3), (), ()), (3, 2, 1), ((3, 2, 1), (), ())),
    ],
)
def test_a_reassignment_keeps_target_and_origin(
    before: tuple[tuple[int, ...], ...],
    target: tuple[int, ...],
    after: tuple[tuple[int, ...], ...],
) -> None:
    found = ReplicaAssignment(*before).reassigned_to(target)
    assert found == after
    assert found.target == target
    assert set(found.origin) == set(ReplicaAssignment(*before).origin)


def test_a_replica_is_taken_out_everywhere() -> None:
    one = ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert one.without_replica(4) == ((5, 1, 2), (5,), (1, 2))
    assert one.without_replica(1) == ((4, 5, 2), (4, 5), (2,))
    assert not ReplicaAssignment((1,)).is_being_reassigned
