"""Brokers of a cluster that change the rules of one pattern at once: no rule is lost."""

import pytest

from broker.security.acl_store import AclStore
from broker.zookeeper import session
from protocol.acls.filters import RuleFilter
from protocol.acls.index import RuleIndex
from protocol.acls.vocabulary import Operation, ResourceType
from storage.waits import together
from tests.support.acl_stores import DENY, allow
from tests.support.fake_zookeeper import FakeZooKeeper
from tests.support.zookeeper_stores import open_zookeeper_store, run_on_loop

TOPIC, READ = ResourceType.TOPIC, Operation.READ


def test_rules_are_added_and_removed_beside_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_new_client", FakeZooKeeper().client)
    rules = [
        [
            allow(TOPIC, READ, "t", principal=f"User:{broker}-{number}", permission=DENY)
            for number in range(5)
        ]
        for broker in range(3)
    ]

    async def one(store: AclStore, broker: int) -> None:
        for rule in rules[broker]:
            await store.create([rule])
        removed = RuleFilter(*rules[broker][0])
        assert await store.delete([removed]) == [[rules[broker][0]]]

    async def whole() -> None:
        stores = [await open_zookeeper_store("fake/k") for _ in range(3)]
        acls = [AclStore(store, RuleIndex()) for store in stores]
        await together(*(one(store, broker) for broker, store in enumerate(acls)))
        fresh = AclStore(stores[0], RuleIndex())
        await fresh.load()
        found = set(await fresh.select(RuleFilter()))
        assert found == {rule for some in rules for rule in some[1:]}
        for store in stores:
            await store.close()

    run_on_loop(whole())
