"""ListGroups over the wire (S-GRP-6)."""

import pytest

from broker.many import MANY
from protocol.api_keys import ApiKey
from protocol.messages.list_groups import ListGroupsRequest
from tests.support.group_handlers import GroupApi, versions
from tests.support.group_harness import SESSION_MS

KEY = ApiKey.LIST_GROUPS


@pytest.mark.parametrize("version", versions(KEY))
def test_all_groups_in_every_version(api: GroupApi, version: int) -> None:
    api.commit(1, group="simple")
    api.stable_group()
    response = api.call(KEY, version, ListGroupsRequest())
    listed = {group.group_id: group for group in response.groups}
    assert response.error_code == 0
    assert {name: group.protocol_type for name, group in listed.items()} == {
        "simple": "",
        "g": "consumer",
    }
    if version >= 4:
        assert (listed["g"].group_state, listed["simple"].group_state) == ("Stable", "Empty")
    if version >= 5:
        assert listed["g"].group_type == "classic"


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {"g", "left"}),
        (["Stable"], [], {"g"}),
        (["stable", "EMPTY"], [], {"g", "left"}),
        (["Dead"], [], set()),
        (["Nonsense"], [], set()),
        ([], ["classic"], {"g", "left"}),
        ([], ["Classic", "consumer"], {"g", "left"}),
        ([], ["consumer"], set()),
        (["Empty"], ["classic"], {"left"}),
    ],
)
def test_filters(api: GroupApi, states: list[str], types: list[str], expected: set[str]) -> None:
    api.stable_group(group="left")
    api.advance_ms(SESSION_MS)
    api.stable_group()
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    assert {group.group_id for group in api.call(KEY, 5, request).groups} == expected


def test_very_many_groups_are_encoded_in_turns(api: GroupApi) -> None:
    for number in range(MANY):
        api.commit(1, group=f"g{number}")
    assert not api.send(KEY, 5, ListGroupsRequest()).large
    api.commit(1, group="one-more")
    later = api.send(KEY, 5, ListGroupsRequest())
    assert later.large
    assert len(later.response.groups) == MANY + 1
    assert not api.send(KEY, 5, ListGroupsRequest(states_filter=["Stable"])).large
