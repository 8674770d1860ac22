"""Replicas are placed round robin, from a broker that is drawn, over all racks."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster.placement import Start, assign_replicas
from protocol.errors import KafkaError

# The table that AdminUtils of Kafka 3.9 documents for five brokers and three replicas.
FIVE = {
    0: (0, 1, 2),
    1: (1, 2, 3),
    2: (2, 3, 4),
    3: (3, 4, 0),
    4: (4, 0, 1),
    5: (0, 2, 3),
    6: (1, 3, 4),
    7: (2, 4, 0),
    8: (3, 0, 1),
    9: (4, 1, 2),
}


def test_the_leader_goes_round_and_the_followers_shift_with_each_round() -> None:
    assert assign_replicas(range(5), range(10), 3) == FIVE


def test_more_partitions_go_on_where_the_topic_begins() -> None:
    assert assign_replicas([0, 1, 2], range(3, 5), 2, start=Start(1, 1)) == {3: (1, 2), 4: (2, 0)}


def test_another_start_is_another_leader() -> None:
    random = Random(7)
    leaders = {
        assign_replicas(range(5), range(1), 1, start=Start.drawn(random))[0] for _ in range(99)
    }
    assert leaders == {(0,), (1,), (2,), (3,), (4,)}


def test_neighbours_are_on_different_racks() -> None:
    # The example of AdminUtils: brokers of three racks in turn.
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = assign_replicas(sorted(racks), range(7), 3, racks=racks)
    assert placed[0] == (0, 3, 1)
    assert placed[6] == (0, 4, 2)


def test_some_with_a_rack_and_some_without_are_refused() -> None:
    with pytest.raises(KafkaError, match="Not all brokers have rack information"):
        assign_replicas([1, 2], range(1), 1, racks={1: "a", 2: None})


@given(
    st.lists(st.sampled_from("abcd"), min_size=2, max_size=9),
    st.integers(1, 9),
    st.integers(0, 40),
    st.integers(0, 40),
    st.booleans(),
)
def test_replicas_are_different_brokers_on_as_many_racks_as_there_are(
    racks: list[str], replicas: int, first: int, shift: int, with_racks: bool
) -> None:
    brokers = list(range(len(racks)))
    replicas = min(replicas, len(brokers))
    of = {broker: rack for broker, rack in enumerate(racks) if with_racks}
    count = len(brokers) * 6
    placed = assign_replicas(brokers, range(count), replicas, start=Start(first, shift), racks=of)
    for chosen in placed.values():
        assert len(set(chosen)) == replicas
        if of:
            assert len({of[broker] for broker in chosen}) == min(replicas, len(set(racks)))
    led = Counter(chosen[0] for chosen in placed.values())
    assert set(led.values()) == {6}
