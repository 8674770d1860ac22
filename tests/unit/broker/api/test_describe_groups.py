"""DescribeGroups over the wire (S-GRP-6)."""

import pytest

from broker.api.describe_groups import FEW
from broker.security import authorized_operations
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support.group_handlers import GroupApi, versions

KEY = ApiKey.DESCRIBE_GROUPS


@pytest.mark.parametrize("version", versions(KEY))
def test_a_stable_group_and_one_that_is_not_there(api: GroupApi, version: int) -> None:
    _, ids = api.stable_group(2)
    response = api.call(KEY, version, DescribeGroupsRequest(groups=["g", "none"]))
    found, missing = response.groups
    assert (found.error_code, found.group_id, found.group_state) == (0, "g", "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    assert [one.member_id for one in found.members] == ids
    assert bytes(found.members[0].member_assignment) == ids[0].encode()
    assert found.members[0].client_host == "/127.0.0.1"
    assert found.members[0].member_metadata
    assert found.authorized_operations == authorized_operations.NOT_ASKED
    assert (missing.group_id, missing.group_state, missing.members) == ("none", "Dead", [])
    if version >= 6:
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert missing.error_message == "Group none not found."
    else:
        assert missing.error_code == 0


def test_authorized_operations_and_instance_ids(api: GroupApi) -> None:
    api.stable_group(instance="i")
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (found,) = api.call(KEY, 5, request).groups
    assert found.authorized_operations == 0b1101_0100_1000
    assert found.members[0].group_instance_id == "i"


def test_refusals(api: GroupApi) -> None:
    api.coordinator.shutdown()
    request = DescribeGroupsRequest(groups=["g"])
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert api.call(KEY, 6, request).groups[0].error_code == code


def test_very_many_groups_are_described_while_they_are_encoded(api: GroupApi) -> None:
    names = [f"g{number}" for number in range(FEW + 1)]
    assert not api.send(KEY, 6, DescribeGroupsRequest(groups=names[:FEW])).large
    later = api.send(KEY, 6, DescribeGroupsRequest(groups=names))
    assert later.large
    assert [one.group_id for one in later.response.groups] == names
