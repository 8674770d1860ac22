"""Access rules in the metadata tree: durable, watched, changed as a whole."""

import logging
from typing import Any

import pytest
import trio

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import Create, Delete, MetadataStoreError, Put
from broker.cluster.tree_values import BadValueError
from broker.security.acl_store import LARGE_NODE, MOST_DELETED, AclStore, Changed
from protocol.acls.filters import RuleFilter
from protocol.acls.index import RuleIndex
from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import Operation, PermissionType, ResourceType
from protocol.errors import ErrorCode, KafkaError
from storage.waits import at_once
from tests.support.acl_stores import ALLOW, DENY, PREFIXED, allow, open_rules
from tests.support.driving import RunWork

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE = Operation.READ, Operation.WRITE
A = allow(TOPIC, READ, "a")
B = allow(TOPIC, WRITE, "a")
C = allow(GROUP, READ, "g", PREFIXED)


async def test_s_acl_9_rules_are_in_the_tree_and_in_memory_when_they_are_made() -> None:
    rules = await open_rules(A)
    await rules.acls.create([B, C, A, C])
    assert sorted(await rules.acls.select(RuleFilter())) == sorted([A, B, C])
    node = await rules.store.get("/kafka-acl/Topic/a")
    assert node is not None
    assert node.value.count(b"User:ANONYMOUS") == 2
    assert node.version == 1
    assert await rules.store.children("/kafka-acl-extended/prefixed/Group") == ["g"]
    await rules.acls.create([A, B])
    assert await rules.store.get("/kafka-acl/Topic/a") == node  # nothing new, nothing written
    again = await open_rules(store=rules.store)
    assert sorted(await again.acls.select(RuleFilter())) == sorted([A, B, C])


async def test_s_acl_7_filters_of_one_request_see_the_same_rules_and_an_empty_node_goes() -> None:
    rules = await open_rules(A, B, C)
    everything_read = RuleFilter(operation=READ)
    deleted = await rules.acls.delete(
        [RuleFilter(TOPIC, "a", A.pattern_type), everything_read, RuleFilter(GROUP, "g")]
    )
    assert [sorted(one) for one in deleted] == [sorted([A, B]), sorted([A, C]), [C]]
    assert await rules.acls.select(RuleFilter()) == []
    assert await rules.store.children("/kafka-acl/Topic") == []
    assert len(rules.acls.index) == 0


async def test_what_the_store_refuses_changes_nothing() -> None:
    rules = await open_rules(A)

    async def fail(operations: Any) -> None:
        raise MetadataStoreError("/kafka-acl", "the disk is gone")

    rules.store.apply = fail  # type: ignore[method-assign]
    for change in (rules.acls.create([B]), rules.acls.delete([RuleFilter()])):
        with pytest.raises(KafkaError, match="disk is gone"):
            await change
    assert await rules.acls.select(RuleFilter()) == [A]


async def test_s_acl_7_a_deletion_has_a_limit_and_is_refused_whole() -> None:
    rules = await open_rules(*(allow(TOPIC, READ, f"t{n}") for n in range(MOST_DELETED // 2)))
    with pytest.raises(KafkaError, match="more than 10000") as refused:
        await rules.acls.delete([RuleFilter(), RuleFilter(), RuleFilter()])
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert len(rules.acls.index) == MOST_DELETED // 2
    await rules.acls.delete([RuleFilter(), RuleFilter()])
    assert len(rules.acls.index) == 0


async def test_a_pattern_may_have_very_many_rules() -> None:
    many = [allow(TOPIC, READ, "t", principal=f"User:{n}") for n in range(3 * LARGE_NODE)]
    rules = await open_rules(*many)
    await rules.acls.create([A, allow(TOPIC, READ, "t")])
    again = await open_rules(store=rules.store)
    assert len(again.acls.index) == len(many) + 2
    only = RuleFilter(TOPIC, "t", A.pattern_type, principal="User:7")
    assert await again.acls.delete([only]) == [[many[7]]]
    assert len(again.acls.index) == len(many) + 1


async def test_other_writers_of_the_tree_are_followed(
    run_work: RunWork, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []
    rules = at_once(open_rules(A))
    rules.acls.follow(lambda: told.append(len(rules.acls.index)))
    node = at_once(rules.store.get("/kafka-acl/Topic/a"))
    assert node is not None
    denied = node.value.replace(b"Allow", b"Deny")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_work, rules.acls.run())
        await trio.testing.wait_all_tasks_blocked()
        await run_work(rules.store.apply([Put("/kafka-acl/Topic/a", denied)]))
        await trio.testing.wait_all_tasks_blocked()
        assert not rules.acls.index.decide(A.principal, "h", READ, TOPIC, "a").allowed
        await run_work(rules.store.apply([Create("/kafka-acl/Topic/b", node.value)]))
        await trio.testing.wait_all_tasks_blocked()
        assert rules.acls.index.decide(A.principal, "h", READ, TOPIC, "b").allowed
        # A node that cannot be read changes nothing, and the change after it is applied.
        await run_work(rules.store.apply([Put("/kafka-acl/Topic/b", b"{")]))
        await run_work(rules.store.apply([Delete("/kafka-acl/Topic/a")]))
        await trio.testing.wait_all_tasks_blocked()
        assert rules.acls.index.patterns() == [Pattern(TOPIC, "b")]
        nursery.cancel_scope.cancel()
    assert told == [1, 2, 1]
    assert [one.levelno for one in caplog.records] == [logging.ERROR]


async def test_rules_that_cannot_be_read_stop_the_start(store: EmbeddedStore) -> None:
    await store.create("/kafka-acl/Topic/t", b'{"version":1,"acls":[{}]}')
    with pytest.raises(BadValueError, match="/kafka-acl/Topic/t"):
        await AclStore(store, RuleIndex()).load()


def bob(number: int, permission: PermissionType = ALLOW) -> Rule:
    host = "*" if permission is DENY else f"10.0.0.{number}"
    return allow(TOPIC, READ, "t", principal="User:bob", host=host, permission=permission)


everybody_is_denied = allow(TOPIC, READ, "t", principal="User:*", permission=DENY)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([bob(2)], [bob(50, DENY), bob(50)], id="a denial and what it denies come"),
        pytest.param([bob(50, DENY), bob(50)], [bob(2)], id="a denial and what it denies go"),
        pytest.param([bob(50, DENY)], [everybody_is_denied, bob(50)], id="another denial"),
        pytest.param([bob(1)], [bob(2)], id="one rule in place of the only one"),
    ],
)
async def test_while_rules_change_nobody_is_let_in_between(
    before: list[Rule], after: list[Rule]
) -> None:
    rules = await open_rules(*before, allow_if_none=True)
    index, seen = rules.acls.index, set()
    add, remove = index.add, index.remove

    def look(change: Any) -> Any:
        def changed(rule: Rule) -> bool:
            result = bool(change(rule))
            seen.add(index.decide("User:bob", "10.0.0.50", READ, TOPIC, "t").allowed)
            return result

        return changed

    index.add, index.remove = look(add), look(remove)  # type: ignore[method-assign]

    async def plan() -> tuple[None, Changed]:
        return None, {Pattern(TOPIC, "t"): set(after)}

    await rules.acls._write(plan)
    assert seen == {False}
    assert len(index) == len(after)
