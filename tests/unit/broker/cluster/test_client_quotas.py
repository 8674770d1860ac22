"""Quotas in the metadata tree: kept, watched, and changed beside what else their nodes hold."""

import json
from collections.abc import Sequence

import pytest

from broker.cluster.client_quotas import Alteration, ClientQuotas, QuotaOperation
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import (
    Create,
    Put,
    TreeOperation,
    VersionMismatchError,
)
from broker.quotas.entity import DEFAULT, Entity
from protocol.errors import ErrorCode, KafkaError

PATH = "/config/users/ann"


class Told:
    """Stands in for `Quotas`, and notes each change."""

    def __init__(self) -> None:
        self.changes: list[tuple[Entity, str, float | None]] = []

    def change(self, entity: Entity, key: str, bound: float | None) -> None:
        self.changes.append((entity, key, bound))

    def taken(self) -> list[tuple[Entity, str, float | None]]:
        changes, self.changes = self.changes, []
        return changes


class Tree:
    """A store, the quotas of a broker over it, and what they told."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.told = Told()
        self.quotas = ClientQuotas(store, self.told)  # type: ignore[arg-type]

    async def config(self, path: str) -> dict[str, str] | None:
        node = await self.store.get(path)
        return None if node is None else json.loads(node.value)["config"]

    async def alter(
        self, *alterations: Alteration, validate_only: bool = False
    ) -> list[ErrorCode | None]:
        results = await self.quotas.alter(alterations, validate_only=validate_only)
        return [None if error is None else error.code for _, error in results]


def change(parts: dict[str, str | None], *removed: str, **values: float) -> Alteration:
    operations = [QuotaOperation(key, value) for key, value in values.items()]
    operations += [QuotaOperation(key, None) for key in removed]
    return Alteration(parts=parts, operations=operations)


ANN: dict[str, str | None] = {"user": "ann"}


@pytest.fixture
def here(store: EmbeddedStore) -> Tree:
    return Tree(store)


def value(config: dict[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": config}).encode()


async def test_s_qta_8_a_quota_stands_in_the_node_of_its_entity_and_is_in_force(here: Tree) -> None:
    wanted = change(ANN, producer_byte_rate=1024.0, request_percentage=12.5)
    assert await here.alter(wanted) == [None]
    assert await here.config(PATH) == {
        "producer_byte_rate": "1024",
        "request_percentage": "12.5",
    }
    ann = Entity(user="ann")
    assert sorted(here.told.taken()) == [
        (ann, "producer_byte_rate", 1024),
        (ann, "request_percentage", 12.5),
    ]
    assert here.quotas.entities == {ann: {"producer_byte_rate": 1024, "request_percentage": 12.5}}
    wanted = change(ANN, "request_percentage", producer_byte_rate=1024)
    assert await here.alter(wanted) == [None]
    assert here.told.taken() == [(ann, "request_percentage", None)]
    assert await here.alter(change(ANN, "producer_byte_rate", "consumer_byte_rate")) == [None]
    assert here.told.taken() == [(ann, "producer_byte_rate", None)]
    assert here.quotas.entities == {}
    assert await here.store.get(PATH) is None


async def test_s_qta_8_a_start_reads_all_of_them(here: Tree) -> None:
    nodes = {
        "/config/users/ann": {"producer_byte_rate": "1", "SCRAM-SHA-256": "salt=..."},
        "/config/users/ann/clients/c%2F1": {"consumer_byte_rate": "2.0E1"},
        "/config/users/<default>/clients/<default>": {"request_percentage": "3.5"},
        "/config/clients/<default>": {"controller_mutation_rate": "4"},
        "/config/ips/10.0.0.1": {"connection_creation_rate": "5"},
        "/config/users/bob": {"SCRAM-SHA-512": "salt=..."},
        "/config/topics/t": {"retention.ms": "6"},
    }
    for path, config in nodes.items():
        await here.store.create(path, value(config))
    await here.quotas.load()
    assert here.quotas.entities == {
        Entity(user="ann"): {"producer_byte_rate": 1},
        Entity(user="ann", client_id="c/1"): {"consumer_byte_rate": 20},
        Entity(user=DEFAULT, client_id=DEFAULT): {"request_percentage": 3.5},
        Entity(client_id=DEFAULT): {"controller_mutation_rate": 4},
        Entity(ip="10.0.0.1"): {"connection_creation_rate": 5},
    }
    assert len(here.told.taken()) == 5


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"[]",
        b'{"version":1}',
        value({"producer_byte_rate": "many"}),
        value({"producer_byte_rate": "-1"}),
        value({"connection_creation_rate": "1"}),
    ],
)
async def test_what_cannot_be_read_is_no_quota(here: Tree, content: bytes) -> None:
    await here.store.create(PATH, content)
    await here.quotas.load()
    assert here.quotas.entities == {}
    assert here.told.changes == []


async def test_s_qta_8_what_others_write_is_put_in_force(here: Tree) -> None:
    await here.store.create(PATH, value({"producer_byte_rate": "1"}))
    await here.quotas.catch_up()
    assert here.told.taken() == [(Entity(user="ann"), "producer_byte_rate", 1)]
    await here.store.put(PATH, value({"producer_byte_rate": "1", "SCRAM-SHA-256": "x"}))
    await here.quotas.catch_up()
    assert here.told.taken() == []
    await here.store.put(PATH, value({"consumer_byte_rate": "2"}))
    await here.quotas.catch_up()
    assert {bound for _, _, bound in here.told.taken()} == {None, 2}
    await here.store.delete(PATH)
    await here.quotas.catch_up()
    assert here.told.taken() == [(Entity(user="ann"), "consumer_byte_rate", None)]


async def test_s_qta_8_what_else_a_node_holds_is_kept(here: Tree) -> None:
    await here.store.create(PATH, value({"SCRAM-SHA-256": "salt=..."}))
    await here.alter(change(ANN, producer_byte_rate=1))
    assert await here.config(PATH) == {"SCRAM-SHA-256": "salt=...", "producer_byte_rate": "1"}
    await here.alter(change(ANN, "producer_byte_rate", "SCRAM-SHA-256"))
    assert await here.config(PATH) == {"SCRAM-SHA-256": "salt=..."}


async def test_s_qta_8_a_node_with_others_below_it_stays(here: Tree) -> None:
    await here.alter(
        change({"user": "ann", "client-id": "c"}, producer_byte_rate=2),
        change(ANN, producer_byte_rate=1),
    )
    await here.alter(change(ANN, "producer_byte_rate"))
    assert await here.config(PATH) == {}
    assert here.quotas.entities == {Entity(user="ann", client_id="c"): {"producer_byte_rate": 2}}


class Meddler:
    """Somebody who writes to a node between our reading and our writing it."""

    def __init__(self, store: EmbeddedStore, times: int) -> None:
        self._store = store
        self._apply = store.apply
        self.left = times

    async def __call__(self, operations: Sequence[TreeOperation]) -> None:
        if self.left:
            self.left -= 1
            config = {f"SCRAM-SHA-{self.left}": "x"}
            node = await self._store.get(PATH)
            if node is None:
                await self._apply([Create(PATH, value(config))])
            else:
                await self._apply([Put(PATH, value(json.loads(node.value)["config"] | config))])
        await self._apply(operations)


async def test_s_qta_8_a_change_that_comes_between_is_not_lost(here: Tree) -> None:
    here.store.apply = Meddler(here.store, 3)  # type: ignore[method-assign]
    assert await here.alter(change(ANN, producer_byte_rate=1)) == [None]
    assert await here.config(PATH) == {
        **{f"SCRAM-SHA-{number}": "x" for number in range(3)},
        "producer_byte_rate": "1",
    }


async def test_a_writer_that_always_interferes_is_an_error(here: Tree) -> None:
    meddler = here.store.apply = Meddler(here.store, 1000)  # type: ignore[method-assign]
    with pytest.raises(KafkaError) as refused:
        await here.alter(change(ANN, producer_byte_rate=1))
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert isinstance(refused.value.__cause__, VersionMismatchError)
    assert meddler.left > 900


INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("parts", "values"),
    [
        ({}, {"producer_byte_rate": 1}),
        ({"topic": "t"}, {"producer_byte_rate": 1}),
        ({"user": ""}, {"producer_byte_rate": 1}),
        ({"user": "a", "client-id": ""}, {"producer_byte_rate": 1}),
        ({"user": "a", "ip": "1.2.3.4"}, {"connection_creation_rate": 1}),
        ({"ip": None, "client-id": None}, {"connection_creation_rate": 1}),
        ({"ip": "no such host"}, {"connection_creation_rate": 1}),
        ({"ip": "1.2.3.4"}, {"producer_byte_rate": 1}),
        ({"user": "a"}, {"connection_creation_rate": 1}),
        ({"user": "a"}, {"SCRAM-SHA-256": 1}),
        ({"user": "a"}, {"producer_byte_rate": 0}),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
async def test_s_qta_6_what_is_no_quota_is_refused_and_the_others_are_set(
    here: Tree, parts: dict[str, str | None], values: dict[str, float], validate_only: bool
) -> None:
    good = change({"client-id": "good"}, producer_byte_rate=7)
    result = await here.alter(change(parts, **values), good, validate_only=validate_only)
    assert result == [INVALID, None]
    found = {} if validate_only else {Entity(client_id="good"): {"producer_byte_rate": 7}}
    assert here.quotas.entities == found
    assert len(await here.store.children("/config")) == (not validate_only)


async def test_s_qta_6_what_is_named_twice(here: Tree) -> None:
    twice = Alteration(
        parts={"client-id": "c"},
        operations=[QuotaOperation("producer_byte_rate", 1.0)] * 2,
    )
    first, second = change(ANN, producer_byte_rate=1), change(ANN, producer_byte_rate=2)
    assert await here.alter(twice, first, second) == [INVALID, INVALID]
    assert here.quotas.entities == {Entity(user="ann"): {"producer_byte_rate": 1}}


async def test_s_qta_6_what_is_not_set_may_be_removed(here: Tree) -> None:
    assert await here.alter(change(ANN, "producer_byte_rate", "no.such.key")) == [None]
    assert await here.store.get(PATH) is None
