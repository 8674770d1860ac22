"""The group as data: transitions, votes, leadership."""

import pytest

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.member import Member
from broker.coordinator.group.classic.state import (
    VALID_PREVIOUS_STATES,
    GroupState,
    InvalidGroupTransition,
)
from protocol.errors import ErrorCode
from storage.waits import Signal
from tests.support.refusals import code_of


def member(member_id: str, *protocols: str, instance: str | None = None) -> Member:
    return Member(
        member_id=member_id,
        instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=tuple((name, name.encode()) for name in protocols or ("range",)),
    )


@pytest.mark.parametrize("before", GroupState)
@pytest.mark.parametrize("after", GroupState)
def test_only_the_steps_of_the_table_are_possible(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g", state=before)
    if before in VALID_PREVIOUS_STATES[after]:
        group.transition_to(after, 5)
        assert (group.state, group.previous_state, group.state_timestamp_ms) == (after, before, 5)
    else:
        with pytest.raises(InvalidGroupTransition):
            group.transition_to(after, 5)
        assert group.state is before


def test_the_table_is_kafkas() -> None:
    steps = {
        (before.value, after.value)
        for after, previous in VALID_PREVIOUS_STATES.items()
        for before in previous
        if after is not GroupState.DEAD
    }
    assert steps == {
        ("PreparingRebalance", "Empty"),
        ("Stable", "PreparingRebalance"),
        ("CompletingRebalance", "PreparingRebalance"),
        ("Empty", "PreparingRebalance"),
        ("PreparingRebalance", "CompletingRebalance"),
        ("CompletingRebalance", "Stable"),
    }


def test_protocol_vote_takes_the_favourite_among_what_all_support() -> None:
    group = ClassicGroup("g", state=GroupState.PREPARING_REBALANCE)
    for one in (member("a", "range", "roundrobin"), member("b", "roundrobin", "range")):
        group.add(one)
    assert group.select_protocol() in ("range", "roundrobin")
    group.add(member("c", "roundrobin", "range"))
    assert group.select_protocol() == "roundrobin"
    group.add(member("d", "range"))
    assert group.select_protocol() == "range"
    group._check()


def test_supported_protocols_follow_members_and_their_updates() -> None:
    group = ClassicGroup("g")
    group.add(member("a", "range", "sticky"))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    assert group.supports("consumer", (("sticky", b""),))
    assert not group.supports("connect", (("sticky", b""),))
    assert not group.supports("consumer", (("other", b""),))
    group.update(
        group.members["a"],
        protocols=(("other", b""),),
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
    )
    assert group.supports("consumer", (("other", b""),))
    assert not group.supports("consumer", (("sticky", b""),))
    group._check()


def test_an_empty_group_takes_any_protocol_but_none() -> None:
    group = ClassicGroup("g")
    assert group.supports("anything", (("x", b""),))
    assert not group.supports("", (("x", b""),))
    assert not group.supports("consumer", ())


def test_the_first_member_leads_and_the_next_one_inherits() -> None:
    group = ClassicGroup("g")
    for name in "abc":
        group.add(member(name))
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("c")
    group.remove("b")
    assert group.leader_id is None
    group._check()


def test_a_leader_that_did_not_rejoin_is_replaced_by_one_that_did() -> None:
    group = ClassicGroup("g")
    for name in "abc":
        group.add(member(name))
    assert not group.elect_joined_leader()
    group.set_awaiting_join(group.members["c"], Signal())
    assert group.elect_joined_leader()
    assert group.leader_id == "c"


def test_replacing_a_static_member_keeps_its_place_and_leadership() -> None:
    group = ClassicGroup("g", state=GroupState.PREPARING_REBALANCE)
    group.add(member("old", instance="i"))
    group.add(member("other"))
    group.members["old"].assignment = b"mine"
    group.replace_static("i", "new")
    assert list(group.members) == ["new", "other"]
    assert group.leader_id == "new"
    assert group.static_members == {"i": "new"}
    assert group.members["new"].assignment == b"mine"
    group._check()


def test_s_grp_3_member_validation() -> None:
    group = ClassicGroup("g")
    group.add(member("m", instance="i"))
    group.add(member("n"))
    assert group.validate_member("m", "i").member_id == "m"
    assert group.validate_member("n", None).member_id == "n"
    for member_id, instance, code in (
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("n", "i", ErrorCode.FENCED_INSTANCE_ID),
    ):
        assert code_of(group.validate_member, member_id, instance) is code


def test_subscribed_topics_are_known_of_readable_consumers_only() -> None:
    def read(metadata: bytes) -> frozenset[str] | None:
        return None if metadata == b"sticky" else frozenset({metadata.decode()})

    group = ClassicGroup("g")
    group.add(member("a", "range", "sticky"))
    assert group.is_subscribed_to("anything")  # not computed yet: assume so
    group.protocol_name = "range"
    group.compute_subscribed_topics(read)
    assert group.is_subscribed_to("range")
    assert not group.is_subscribed_to("other")
    group.protocol_name = "sticky"
    group.compute_subscribed_topics(read)
    assert group.subscribed_topics is None
    assert group.is_subscribed_to("other")


def test_a_subscription_that_many_members_have_is_read_once() -> None:
    reads = []

    def read(metadata: bytes) -> frozenset[str]:
        reads.append(metadata)
        return frozenset({metadata.decode()})

    group = ClassicGroup("g")
    for number in range(5):
        group.add(member(f"m{number}", "range"))
    group.protocol_name = "range"
    group.compute_subscribed_topics(read)
    assert (group.subscribed_topics, reads) == (frozenset({"range"}), [b"range"])
