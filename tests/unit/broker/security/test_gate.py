"""The gate before the handlers: what it asks for each API, and what becomes of a denial."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
import trio

from broker.api.registry import ADVERTISED, TABLE, Row, build_handlers
from broker.api.services import Services
from broker.request import Handler, RequestContext
from broker.security.access import (
    CLUSTER_NAME,
    DENIED,
    EVERY,
    Access,
    Operation,
    ResourceType,
    each,
    field,
)
from broker.security.authorizer import ALLOW_ALL
from broker.security.gate import Gate, Guarded
from broker.world.clock import SystemClock
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchRequest, FetchTopic, ReplicaState
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.schema.values import Value
from storage.waits import at_once
from tests.support.api_calls import CONNECTION, context
from tests.support.driving import driver
from tests.support.filled_requests import filled

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER, TRANSACTION = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
Question = tuple[ResourceType, Operation, str]


class Rules:
    """An authorizer that notes what it is asked, and denies what it is told to."""

    def __init__(self, *denied: Any) -> None:
        """`denied`: types of resources, pairs with an operation, or triples with a name, too."""
        self.denied = denied
        self.asked: list[Question] = []
        self.clients: set[tuple[str, str]] = set()

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        self.clients.add((principal, host))
        question = (resource_type, operation, name)
        self.asked.append(question)
        return not {resource_type, question[:2], question} & set(self.denied)


class Topics:
    """A handler that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        self.calls.append(request)
        return "reply"

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        return code


def name_of(topic_id: bytes) -> str | None:
    return f"of-{int.from_bytes(topic_id, 'big')}" if any(topic_id) else None


def gate(rules: Any) -> Gate:
    return Gate(rules, name_of)


def guarded(row: Row, rules: Rules, handler: Handler | None = None) -> Any:
    return gate(rules).guard(handler or Topics(), row.access)


def as_replica(request: Any, number: int) -> None:
    request.replica_id = number
    request.replica_state = ReplicaState(replica_id=number)


def every_version() -> Iterator[Any]:
    for row in TABLE:
        for version in range(row.module.VERSIONS[0], row.module.VERSIONS[1] + 1):
            if row.access:
                yield pytest.param(row, version, id=f"{row.key.name}-{version}")


def texts(request: Any, names: set[str]) -> set[str]:
    """What stands in fields of these names, at any depth; a list of texts is its elements."""
    found: set[str] = set()
    for slot in request._defaults:
        content = getattr(request, slot)
        for element in content if isinstance(content, list) else [content]:
            if isinstance(element, str) and element and slot in names:
                found.add(element)
            elif isinstance(element, bytes) and slot in names and any(element):
                found.add(cast("str", name_of(element)))
            elif isinstance(element, Value):
                found |= texts(element, names)
    return found


NOT_IN_EVERY_VERSION = {
    (ApiKey.PRODUCE, TRANSACTION),
    (ApiKey.FIND_COORDINATOR, TRANSACTION),
    (ApiKey.ADD_PARTITIONS_TO_TXN, CLUSTER),
    (ApiKey.ADD_PARTITIONS_TO_TXN, TRANSACTION),
    (ApiKey.ADD_PARTITIONS_TO_TXN, TOPIC),
}

NAMED = {
    TOPIC: {"topic", "topic_id", "topic_names", "name"},
    GROUP: {"group_id", "groups_names", "groups", "coordinator_keys", "key"},
    TRANSACTION: {"transactional_id", "transactional_ids", "v3_and_below_transactional_id"},
}


@pytest.mark.parametrize(("row", "version"), list(every_version()))
def test_s_acl_1_every_version_of_every_api_asks_for_all_that_it_names(
    row: Row, version: int
) -> None:
    request = filled(row.key, version)
    for topic in request.topics if row.key == ApiKey.CREATE_TOPICS else ():
        topic.configs = []  # have names, too
    if row.key == ApiKey.FETCH:
        as_replica(request, -1)
        request.forgotten_topics_data = []
    rules = Rules((CLUSTER, Operation.CREATE), (CLUSTER, Operation.DELETE))
    rules.denied += ((CLUSTER, Operation.DESCRIBE), (CLUSTER, Operation.CLUSTER_ACTION))
    with_brokers = {ApiKey.WRITE_TXN_MARKERS, ApiKey.ADD_PARTITIONS_TO_TXN}
    if row.key in with_brokers or row.access[0].resource is CLUSTER:
        rules.denied = ()
    handler = Topics()
    assert at_once(guarded(row, rules, handler)(context(row.key, version), request)) == "reply"
    assert handler.calls == [request]
    for resource in {access.resource for access in row.access} - {CLUSTER}:
        asked = {name for kind, _, name in rules.asked if kind is resource}
        if row.key == ApiKey.ADD_PARTITIONS_TO_TXN and version >= 4:
            assert not asked  # by brokers: as members of the cluster
        elif row.key in (ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS):
            assert asked == {EVERY}
        elif resource is TRANSACTION and row.key == ApiKey.FIND_COORDINATOR:
            assert not asked  # the key type is that of groups
        elif row.key.name.endswith("_CONFIGS"):
            assert not asked  # the type of resource is none of these
        else:
            assert asked == texts(request, NAMED[resource])
            assert asked or (row.key, resource) in NOT_IN_EVERY_VERSION
    assert rules.clients <= {("User:ANONYMOUS", CONNECTION.peer_host)}


@pytest.mark.parametrize(("row", "version"), list(every_version()))
def test_s_acl_1_what_is_denied_is_told_with_the_code_of_its_resource(
    row: Row, version: int
) -> None:
    for access in row.access:
        rules = Rules((access.resource, access.operation))
        if access.unless is not None:
            rules.denied += ((access.unless.resource, access.unless.operation),)
        request, ctx = filled(row.key, version), context(row.key, version)
        if row.key.name.endswith("_CONFIGS"):
            kind = {TOPIC: 2, GROUP: 32, CLUSTER: 4}[access.resource]
            request.resources[1].resource_type = kind
        if row.key == ApiKey.FETCH:
            as_replica(request, -1 if access.resource is TOPIC else 1)
        if row.key == ApiKey.INIT_PRODUCER_ID and access.resource is CLUSTER:
            request.transactional_id = None
        if row.key == ApiKey.FIND_COORDINATOR and access.resource is TRANSACTION:
            request.key_type = 1
        if not any(access.names(ctx, request)):
            assert (row.key, access.resource) in NOT_IN_EVERY_VERSION
            continue
        handler = Topics()
        with pytest.raises(KafkaError) as refused:
            at_once(guarded(row, rules, handler)(ctx, request))
        assert refused.value.code is DENIED[access.resource]
        assert handler.calls == []


def codes(response: Any) -> set[int]:
    """All error codes of a response, at any depth."""
    found: set[int] = set()
    for slot in response._defaults:
        content = getattr(response, slot)
        if slot.endswith("error_code") or slot == "partition_error_code":
            found.add(int(content))
        elif isinstance(content, Value):
            found |= codes(content)
        elif not isinstance(content, (str, bytes, int, MagicMock)):
            for element in content or ():
                found |= codes(element)
    return found


def services() -> Services:
    fields: dict[str, Any] = {name: MagicMock() for name in Services.__dataclass_fields__}
    fields["clock"] = SystemClock()
    fields["image"].topic_by_id.return_value.name = "named-by-id"
    return Services(**fields)


def test_a_denial_becomes_the_error_response_of_each_real_handler() -> None:
    handlers = build_handlers(services(), Rules(TOPIC, GROUP, CLUSTER, TRANSACTION))
    for row in TABLE:
        if not row.access:
            assert not isinstance(handlers[row.key], Guarded)
            continue
        version = ADVERTISED[row.key][1]
        request, ctx = filled(row.key, version), context(row.key, version)
        if row.key.name.endswith("_CONFIGS"):
            request.resources[0].resource_type = 2
        if row.key == ApiKey.PRODUCE:
            request.acks = -1
        handler = handlers[row.key]
        with pytest.raises(KafkaError) as refused:
            at_once(handler(ctx, request))
        code = refused.value.code
        assert code in DENIED.values()
        assert int(code) in codes(handler.error_response(ctx, request, code)), row.key


def test_without_rules_the_handlers_stand_in_the_routes_themselves() -> None:
    assert not any(isinstance(one, Guarded) for one in build_handlers(services()).values())
    handler = Topics()
    assert gate(ALLOW_ALL).guard(handler, (Access(CLUSTER, Operation.ALTER),)) is handler
    assert gate(Rules(CLUSTER)).guard(handler, ()) is handler


TWO = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("a", "b")])


def test_one_denied_name_refuses_all_and_the_names_behind_it_are_not_asked_for() -> None:
    rules, handler = Rules((TOPIC, Operation.READ, "a")), Topics()
    behind = gate(rules).guard(handler, (Access(TOPIC, Operation.READ, each("topics", "name")),))
    ctx = context(ApiKey.METADATA, 1)
    with pytest.raises(KafkaError):
        at_once(behind(ctx, TWO))
    assert handler.calls == []
    assert rules.asked == [(TOPIC, Operation.READ, "a")]
    rules.denied = ((TOPIC, Operation.READ, "b"),)
    with pytest.raises(KafkaError):
        at_once(behind(ctx, TWO))
    rules.denied = ((TOPIC, Operation.WRITE),)
    assert at_once(behind(ctx, TWO)) == "reply"


@pytest.mark.parametrize("denied", [(), (TOPIC,), (CLUSTER,), (TOPIC, CLUSTER)])
def test_one_access_may_do_for_another(denied: tuple[ResourceType, ...]) -> None:
    access = Access(
        TOPIC, Operation.CREATE, each("topics", "name"), unless=Access(CLUSTER, Operation.CREATE)
    )
    behind = gate(Rules(*denied)).guard(Topics(), (access,))
    if len(denied) == 2:
        with pytest.raises(KafkaError) as refused:
            at_once(behind(context(ApiKey.METADATA, 1), TWO))
        assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        assert at_once(behind(context(ApiKey.METADATA, 1), TWO)) == "reply"


def asked_for(key: ApiKey, version: int, request: Any) -> list[Question]:
    """Everything is allowed but what would do instead."""
    rules = Rules()
    row = next(row for row in TABLE if row.key == key)
    at_once(guarded(row, rules)(context(key, version), request))
    return rules.asked


def test_a_topic_is_asked_for_by_its_name_and_an_id_of_nobody_is_the_handlers() -> None:
    topics = [
        MetadataRequestTopic(name=None, topic_id=bytes(15) + b"\7"),
        MetadataRequestTopic(name="b"),
        MetadataRequestTopic(name=None),
    ]
    assert asked_for(ApiKey.METADATA, 12, MetadataRequest(topics=topics)) == [
        (TOPIC, Operation.DESCRIBE, "of-7"),
        (TOPIC, Operation.DESCRIBE, "b"),
    ]


@pytest.mark.parametrize(
    ("version", "topics", "asked"),
    [(0, [], [EVERY]), (1, [], []), (1, None, [EVERY]), (12, None, [EVERY])],
)
def test_metadata_of_all_topics_needs_the_access_to_all(
    version: int, topics: list[Any] | None, asked: list[str]
) -> None:
    found = asked_for(ApiKey.METADATA, version, MetadataRequest(topics=topics))
    assert found == [(TOPIC, Operation.DESCRIBE, name) for name in asked]


@pytest.mark.parametrize("version", [11, 17])
def test_a_follower_is_a_member_of_the_cluster_and_a_consumer_reads_topics(version: int) -> None:
    request = FetchRequest(topics=[FetchTopic(topic="t", topic_id=bytes(15) + b"\7")])
    name = "t" if version < 13 else "of-7"
    assert asked_for(ApiKey.FETCH, version, request) == [(TOPIC, Operation.READ, name)]
    as_replica(request, 3)
    by_member = [(CLUSTER, Operation.CLUSTER_ACTION, CLUSTER_NAME)]
    assert asked_for(ApiKey.FETCH, version, request) == by_member


def test_a_producer_without_transactions_needs_idempotent_write_and_one_with_its_id() -> None:
    request = InitProducerIdRequest(transactional_id=None)
    assert asked_for(ApiKey.INIT_PRODUCER_ID, 4, request) == [
        (CLUSTER, Operation.IDEMPOTENT_WRITE, CLUSTER_NAME)
    ]
    request = InitProducerIdRequest(transactional_id="tx")
    assert asked_for(ApiKey.INIT_PRODUCER_ID, 4, request) == [(TRANSACTION, Operation.WRITE, "tx")]


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_the_kind_of_coordinator_says_what_its_key_names(version: int) -> None:
    request = FindCoordinatorRequest(key="k", coordinator_keys=["k"])
    for kind, resource in ((0, GROUP), (1, TRANSACTION)):
        request.key_type = kind
        found = asked_for(ApiKey.FIND_COORDINATOR, version, request)
        assert found == [(resource, Operation.DESCRIBE, "k")]


def test_a_large_request_is_asked_for_in_turns() -> None:
    handler = Topics()
    names = [MetadataRequestTopic(name=f"t{number}") for number in range(20_000)]
    rules = Rules()
    access = (Access(TOPIC, Operation.READ, each("topics", "name")),)
    behind = gate(rules).guard(handler, access)
    ctx = context(ApiKey.METADATA, 1)
    ctx.large = True
    seen: list[int] = []

    async def look() -> None:
        while not handler.calls:
            seen.append(len(rules.asked))
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        run = driver().run
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            assert await run(behind(ctx, MetadataRequest(topics=names))) == "reply"
        rules.denied = ((TOPIC, Operation.READ, "t19999"),)
        with pytest.raises(KafkaError):
            await run(behind(ctx, MetadataRequest(topics=names)))

    trio.run(main)
    assert len(handler.calls) == 1
    assert any(0 < count < 20_000 for count in seen)


def test_who_asks_is_the_principal_of_the_connection() -> None:
    rules = Rules()
    connection = replace(CONNECTION, principal="User:alice", peer_host="10.0.0.7")
    behind = gate(rules).guard(Topics(), (Access(GROUP, Operation.READ, field("group_id")),))
    request = filled(ApiKey.HEARTBEAT, 4)
    at_once(behind(context(ApiKey.HEARTBEAT, 4, connection=connection), request))
    assert rules.clients == {("User:alice", "10.0.0.7")}
