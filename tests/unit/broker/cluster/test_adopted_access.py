"""Access rules, users and quotas of another broker are taken into the metadata tree, once."""

from broker.cluster.acl_nodes import decode_rules, encode_rules, node_path
from broker.cluster.adopted_access import TAKEN, AccessVerdict, plan_access
from broker.cluster.client_quotas import ClientQuotas
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.kraft_access import KraftAccess
from broker.cluster.metadata_store import Create
from broker.cluster.tree_values import decode_config, encode_config
from broker.quotas.entity import Entity
from broker.quotas.quotas import Quotas
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, ResourceType
from tests.support.acl_stores import DENY, PREFIXED, allow
from tests.support.manual_clock import ManualClock
from tests.support.stores import value_of

READ = allow(ResourceType.TOPIC, Operation.READ, "orders", principal="User:alice")
WRITE = allow(ResourceType.TOPIC, Operation.WRITE, "orders", principal="User:bob")
NO_GROUPS = allow(ResourceType.GROUP, Operation.READ, "a/", PREFIXED, permission=DENY)
SCRAM = {"SCRAM-SHA-256": "salt=c2FsdA==,stored_key=/w==,server_key=/w==,iterations=4096"}
ALICE = "/config/users/alice"


def found() -> KraftAccess:
    return KraftAccess(
        rules={b"1": READ, b"2": WRITE, b"3": NO_GROUPS, b"4": READ},
        credentials={ALICE: dict(SCRAM)},
        quotas={
            ALICE: {"producer_byte_rate": "1024"},
            "/config/users/bob/clients/c": {"request_percentage": "2.5"},
            "/config/ips/<default>": {"connection_creation_rate": "3"},
        },
        unknown={b"5": "a rule that is not known"},
    )


async def take(store: EmbeddedStore, access: KraftAccess | None) -> AccessVerdict:
    verdict, operations = await plan_access(store, access)
    if operations:
        await store.apply(operations)
    return verdict


async def rules_beside(store: EmbeddedStore, *some: Rule) -> set[Rule]:
    """All rules of the same patterns."""
    rules: set[Rule] = set()
    for rule in some:
        rules |= decode_rules(rule.pattern, await value_of(store, node_path(rule.pattern)))
    return rules


async def config_of(store: EmbeddedStore, path: str) -> dict[str, str]:
    return decode_config(path, await value_of(store, path))


async def test_everything_stands_where_kafka_in_zookeeper_mode_has_it(store: EmbeddedStore) -> None:
    verdict = await take(store, found())
    assert verdict == AccessVerdict(
        rules=3, users=1, quotas=3, left_out=("a rule that is not known",)
    )
    assert await rules_beside(store, READ, NO_GROUPS) == {READ, WRITE, NO_GROUPS}
    assert await config_of(store, ALICE) == {**SCRAM, "producer_byte_rate": "1024"}
    quotas = ClientQuotas(store, Quotas(ManualClock()))
    await quotas.load()
    assert quotas.entities == {
        Entity(user="alice"): {"producer_byte_rate": 1024.0},
        Entity(user="bob", client_id="c"): {"request_percentage": 2.5},
        Entity.of({"ip": None}): {"connection_creation_rate": 3.0},
    }


async def test_what_was_removed_here_does_not_come_back(store: EmbeddedStore) -> None:
    await take(store, found())
    verdict, operations = await plan_access(store, found())
    assert not verdict.is_any
    assert (verdict, operations) == (AccessVerdict(), [])


async def test_what_is_here_already_stays_and_counts(store: EmbeddedStore) -> None:
    own = allow(ResourceType.TOPIC, Operation.DELETE, "orders")
    await store.apply(
        [
            Create(node_path(own.pattern), encode_rules([own])),
            Create(ALICE, encode_config({"producer_byte_rate": "5", "request_percentage": "9"})),
            Create("/config/users/bob"),
        ]
    )
    await take(store, found())
    assert await rules_beside(store, own) == {READ, WRITE, own}
    assert await config_of(store, ALICE) == {
        **SCRAM,
        "producer_byte_rate": "5",
        "request_percentage": "9",
    }


async def test_a_log_without_any_access_may_have_some_later(store: EmbeddedStore) -> None:
    for nothing in (None, KraftAccess(), KraftAccess(unknown={b"1": "a rule"})):
        verdict, operations = await plan_access(store, nothing)
        assert not operations
        assert not verdict.is_any
    assert verdict.left_out == ("a rule",)
    assert (await take(store, found())).is_any
    assert await store.get(TAKEN) is not None
