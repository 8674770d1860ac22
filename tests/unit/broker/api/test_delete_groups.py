"""DeleteGroups over the wire (S-GRP-6)."""

from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from tests.support.group_handlers import GroupApi, versions

KEY = ApiKey.DELETE_GROUPS


def results(response: Any) -> list[tuple[str, int]]:
    return [(one.group_id, one.error_code) for one in response.results]


@pytest.mark.parametrize("version", versions(KEY))
def test_groups_in_every_state(api: GroupApi, version: int) -> None:
    api.commit(1, group="empty")
    api.stable_group()
    request = DeleteGroupsRequest(groups_names=["empty", "g", "none", "empty"])
    assert results(api.call(KEY, version, request)) == [
        ("empty", 0),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert api.committed(group="empty") is None


def test_the_answer_waits_for_all_writes(api: GroupApi) -> None:
    for group in ("a", "b"):
        api.commit(1, group=group)
    api.log.hold = True
    later = api.send(KEY, 2, DeleteGroupsRequest(groups_names=["a", "b", "c"]))
    assert not later.done
    api.log.release()
    assert results(later.response) == [("a", 0), ("b", 0), ("c", ErrorCode.GROUP_ID_NOT_FOUND)]


def test_nothing_asked() -> None:
    assert results(GroupApi().call(KEY, 2, DeleteGroupsRequest(groups_names=[]))) == []
