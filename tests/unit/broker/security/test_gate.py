"""The gate before the handlers: what it asks for a whole request, and what becomes of a denial."""

from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from broker.registry import APIS, build_handlers
from broker.request import RequestContext
from broker.security.access import (
    CLUSTER_NAME,
    DENIED,
    Access,
    Operation,
    Question,
    ResourceType,
    field,
)
from broker.security.gate import Guarded
from broker.services import Services
from broker.world.clock import SystemClock
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.schema.values import Value
from storage.waits import at_once
from tests.support.acl_stores import NotedPermissions
from tests.support.api_calls import CONNECTION, context
from tests.support.filled_requests import filled

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER, TRANSACTION = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
ALTER, ACTION = Operation.ALTER, Operation.CLUSTER_ACTION


class Noting:
    """A handler that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        self.calls.append(request)
        return "reply"

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        return code


TWO = (
    Access(TRANSACTION, Operation.WRITE, field("transactional_id")),
    Access(GROUP, Operation.READ, field("group_id")),
)
REQUEST = filled(ApiKey.ADD_OFFSETS_TO_TXN, 3)


def test_s_acl_1_accesses_are_asked_for_in_their_order_and_the_first_denial_counts() -> None:
    ctx = context(ApiKey.ADD_OFFSETS_TO_TXN, 3)
    for denied, asked in (
        ((), 2),
        ((GROUP,), 2),
        ((TRANSACTION,), 1),
        ((TRANSACTION, GROUP), 1),
    ):
        allowed, handler = NotedPermissions(denied), Noting()
        behind = Guarded(handler, TWO, allowed)
        if not denied:
            assert at_once(behind(ctx, REQUEST)) == "reply"
        else:
            with pytest.raises(KafkaError) as refused:
                at_once(behind(ctx, REQUEST))
            assert refused.value.code is DENIED[denied[0]]
        assert handler.calls == ([] if denied else [REQUEST])
        assert len(allowed.asked) == asked
        assert allowed.asked[0] == (TRANSACTION, Operation.WRITE, REQUEST.transactional_id)
        assert not allowed.quiet


@pytest.mark.parametrize(
    ("denied", "passes"),
    [((), True), (((CLUSTER, ALTER),), True), (((CLUSTER, ACTION),), True), ((CLUSTER,), False)],
)
def test_one_access_may_do_for_another_and_is_asked_for_quietly(denied: Any, passes: bool) -> None:
    access = Access(CLUSTER, ACTION, unless=Question(CLUSTER, ALTER))
    allowed = NotedPermissions(denied)
    behind = Guarded(Noting(), (access,), allowed)
    if passes:
        assert at_once(behind(context(ApiKey.WRITE_TXN_MARKERS, 1), None)) == "reply"
    else:
        with pytest.raises(KafkaError, match="Cluster authorization failed"):
            at_once(behind(context(ApiKey.WRITE_TXN_MARKERS, 1), None))
    assert allowed.quiet == [(CLUSTER, ALTER, CLUSTER_NAME)]
    assert len(allowed.asked) == (denied != () and denied != ((CLUSTER, ACTION),))


def test_whether_it_would_pass_is_asked_quietly_before_there_is_a_request() -> None:
    ctx = context(ApiKey.UPDATE_METADATA, 8)
    for denied, passes in (((), True), ((CLUSTER,), False)):
        allowed = NotedPermissions(denied)
        gate = Guarded(Noting(), (Access(CLUSTER, ACTION),), allowed)
        assert gate.passes(ctx) is passes
        assert allowed.quiet == [(CLUSTER, ACTION, CLUSTER_NAME)]
        assert not allowed.asked


def test_versions_may_need_something_else() -> None:
    key = ApiKey.ADD_PARTITIONS_TO_TXN
    for version, access in ((3, (TRANSACTION, Operation.WRITE)), (4, (CLUSTER, ACTION))):
        allowed, request = NotedPermissions(), filled(key, version)
        behind = Guarded(Noting(), APIS[key].accesses, allowed)
        assert at_once(behind(context(key, version), request)) == "reply"
        assert [one[:2] for one in allowed.asked] == [access]


def test_permissions_are_those_of_the_principal_of_the_connection() -> None:
    allowed = NotedPermissions()
    connection = replace(CONNECTION, principal="User:alice", peer_host="10.0.0.7")
    behind = Guarded(Noting(), TWO, allowed)
    at_once(behind(context(ApiKey.ADD_OFFSETS_TO_TXN, 3, connection=connection), REQUEST))
    assert allowed.clients == {("User:alice", "10.0.0.7")}


def services(allowed: NotedPermissions | None) -> Services:
    fields: dict[str, Any] = {name: MagicMock() for name in Services.__dataclass_fields__}
    fields |= {"clock": SystemClock(), "allowed": allowed}
    return Services(**fields)


def codes(response: Any) -> set[int]:
    """All error codes of a response, at any depth."""
    found: set[int] = set()
    for slot in response._defaults:
        content = getattr(response, slot)
        if slot.endswith("error_code"):
            found.add(int(content))
        elif isinstance(content, Value):
            found |= codes(content)
        elif not isinstance(content, (str, bytes, int, MagicMock)):
            for element in content or ():
                found |= codes(element)
    return found


def test_s_acl_1_a_denial_becomes_the_error_response_of_each_real_handler() -> None:
    handlers = build_handlers(services(NotedPermissions((GROUP, CLUSTER, TRANSACTION))))
    behind = 0
    for api in APIS.values():
        handler = handlers[api.key].handler
        if not api.accesses:
            assert not isinstance(handler, Guarded)
            continue
        behind += 1
        version = api.versions[1]
        request, ctx = filled(api.key, version), context(api.key, version)
        with pytest.raises(KafkaError) as refused:
            at_once(handler(ctx, request))
        code = refused.value.code
        assert code is DENIED[api.accesses[0].resource]
        assert int(code) in codes(handler.error_response(ctx, request, code)), api.key
    assert behind > 15


def test_without_an_authorizer_the_handlers_stand_in_the_routes_themselves() -> None:
    assert not any(
        isinstance(one.handler, Guarded) for one in build_handlers(services(None)).values()
    )
