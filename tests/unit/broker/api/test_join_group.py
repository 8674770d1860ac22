"""JoinGroup over the wire, in all its versions."""

import pytest

from broker.api.join_group import LONGEST_NAME
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from storage.waits import at_once
from tests.support.api_calls import context, over_the_wire
from tests.support.group_handlers import GroupApi, Later, versions
from tests.support.group_harness import INITIAL_DELAY_MS, subscription

KEY = ApiKey.JOIN_GROUP
METADATA = subscription("t")


def join(api: GroupApi, version: int, member_id: str = "", **fields: object) -> Later:
    asked = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000 if version else -1,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=METADATA)],
        **fields,
    }
    return api.send(KEY, version, JoinGroupRequest(**asked))


@pytest.mark.parametrize("version", versions(KEY))
def test_a_group_of_one_in_every_version(api: GroupApi, version: int) -> None:
    first = join(api, version)
    if version >= 4:
        assert first.response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        first = join(api, version, first.response.member_id)
    assert not first.done
    api.advance_ms(INITIAL_DELAY_MS)
    joined = first.response
    assert joined.error_code == 0
    assert joined.generation_id == 1
    assert joined.leader == joined.member_id
    assert joined.member_id.startswith("test-")
    assert joined.protocol_name == "range"
    assert [bytes(one.metadata) for one in joined.members] == [METADATA]
    if version >= 7:
        assert joined.protocol_type == "consumer"
    member = api.group().members[joined.member_id]
    assert member.client_host == "/127.0.0.1"
    assert member.rebalance_timeout_ms == (60_000 if version else 10_000)


@pytest.mark.parametrize("version", versions(KEY))
def test_a_refusal_in_every_version(api: GroupApi, version: int) -> None:
    refused = join(api, version, "m", session_timeout_ms=1).response
    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert refused.member_id == "m"
    assert refused.generation_id == -1
    assert refused.protocol_name == (None if version >= 7 else "")
    unknown = join(api, version, "m").response
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_over_the_wire(api: GroupApi) -> None:
    joined = join(api, 9, group_instance_id="i")
    api.advance_ms(INITIAL_DELAY_MS)
    assert joined.response.members[0].group_instance_id == "i"
    member_id = joined.response.member_id
    api.sync(member_id, 1, {member_id: b"a"}, instance="i")
    back = join(api, 9, group_instance_id="i", reason="restarted").response
    assert back.skip_assignment
    assert back.member_id not in ("", member_id)


def test_metadata_is_kept_when_the_frame_is_gone(api: GroupApi) -> None:
    member_id = join(api, 5).response.member_id
    join(api, 5, member_id)
    assert api.group().members[member_id].metadata("range") == METADATA


def test_a_parked_join_holds_nothing_but_its_connection(api: GroupApi) -> None:
    later = join(api, 3)
    assert not later.done
    assert later.parked
    api.advance_ms(INITIAL_DELAY_MS)
    assert later.done


def test_a_join_whose_client_leaves_stays_in_the_group(api: GroupApi) -> None:
    gone, stays = join(api, 3), join(api, 3)
    gone.leave()
    api.advance_ms(2 * INITIAL_DELAY_MS)
    assert stays.response.error_code == ErrorCode.NONE
    assert len(api.group().members) == 2


@pytest.mark.parametrize("version", versions(KEY))
def test_a_name_that_leaves_no_room_for_a_member_id(api: GroupApi, version: int) -> None:
    """A member id is the name and a UUID, and must fit a text of the protocol."""
    name = "é" * (LONGEST_NAME // 2)
    if version >= 5:
        taken = join(api, version, group_instance_id=name)
        api.advance_ms(INITIAL_DELAY_MS)
        assert taken.response.error_code == ErrorCode.NONE
        refused = join(api, version, group_instance_id=name + "é")
    else:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
        )
        handler = api.handlers[KEY]
        envelope = context(KEY, version, client_id=name + "é")
        response = over_the_wire(KEY, version, at_once(handler(envelope, request)))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        return
    assert refused.response.error_code == ErrorCode.INVALID_REQUEST
