"""LeaveGroup over the wire."""

import pytest

from broker.coordinator.group.classic.state import GroupState
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.group_handlers import GroupApi, versions

KEY = ApiKey.LEAVE_GROUP


@pytest.mark.parametrize("version", versions(KEY))
def test_leaving_in_every_version(api: GroupApi, version: int) -> None:
    _, ids = api.stable_group(2)

    def leave(member_id: str) -> tuple[int, list[int]]:
        if version < 3:
            request = LeaveGroupRequest(group_id="g", member_id=member_id)
        else:
            request = LeaveGroupRequest(
                group_id="g", members=[MemberIdentity(member_id=member_id, reason=None)]
            )
        response = api.call(KEY, version, request)
        return response.error_code, [one.error_code for one in response.members]

    unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
    assert leave("m") == ((unknown, []) if version < 3 else (0, [unknown]))
    for one in ids:
        assert leave(one) == ((0, []) if version < 3 else (0, [0]))
    assert api.group().state is GroupState.EMPTY


def test_s_grp_3_many_with_reasons(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    api = GroupApi()
    api.join(instance="a")
    api.join(instance="b")
    response = api.call(
        KEY,
        5,
        LeaveGroupRequest(
            group_id="g",
            members=[
                MemberIdentity(member_id="", group_instance_id="a", reason="scaled down"),
                MemberIdentity(member_id="", group_instance_id="x"),
            ],
        ),
    )
    assert response.error_code == 0
    assert [(one.group_instance_id, one.error_code) for one in response.members] == [
        ("a", 0),
        ("x", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert "scaled down" in caplog.text
