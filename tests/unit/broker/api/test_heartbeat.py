"""Heartbeat over the wire."""

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from tests.support.group_handlers import GroupApi, versions

KEY = ApiKey.HEARTBEAT


@pytest.mark.parametrize("version", versions(KEY))
def test_heartbeats_in_every_version(api: GroupApi, version: int) -> None:
    generation, (member_id,) = api.stable_group()

    def beat(**fields: object) -> int:
        asked = {"group_id": "g", "generation_id": generation, "member_id": member_id, **fields}
        code: int = api.call(KEY, version, HeartbeatRequest(**asked)).error_code
        return code

    assert beat() == ErrorCode.NONE
    assert beat(generation_id=9) == ErrorCode.ILLEGAL_GENERATION
    assert beat(member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(group_id="") == ErrorCode.INVALID_GROUP_ID


def test_fenced(api: GroupApi) -> None:
    api.join(instance="i")
    request = HeartbeatRequest(
        group_id="g", generation_id=0, member_id="old", group_instance_id="i"
    )
    assert api.call(KEY, 3, request).error_code == ErrorCode.FENCED_INSTANCE_ID
