"""SyncGroup over the wire."""

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.group_handlers import GroupApi, versions

KEY = ApiKey.SYNC_GROUP


@pytest.mark.parametrize("version", versions(KEY))
def test_leader_and_follower_in_every_version(api: GroupApi, version: int) -> None:
    leader, follower = api.joined(2)
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    waiting = api.send(
        KEY,
        version,
        SyncGroupRequest(group_id="g", generation_id=1, member_id=follower, **protocol),
    )
    assert not waiting.done
    assert waiting.parked
    led = api.call(
        KEY,
        version,
        SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id=leader,
            assignments=[
                SyncGroupRequestAssignment(member_id=leader, assignment=b"L"),
                SyncGroupRequestAssignment(member_id=follower, assignment=b"F"),
            ],
            **protocol,
        ),
    )
    assert (led.error_code, bytes(led.assignment)) == (0, b"L")
    assert (waiting.response.error_code, bytes(waiting.response.assignment)) == (0, b"F")
    if version >= 5:
        assert (led.protocol_type, led.protocol_name) == ("consumer", "range")
    assert api.group().members[follower].assignment == b"F"


def test_the_protocol_is_required_from_v5() -> None:
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
    api = GroupApi()
    code = api.call(KEY, 5, request).error_code
    assert code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert api.call(KEY, 4, request).error_code == ErrorCode.UNKNOWN_MEMBER_ID
