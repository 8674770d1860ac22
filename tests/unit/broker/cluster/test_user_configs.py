from collections.abc import Mapping

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import MetadataStore, StoredNode
from broker.cluster.tree_values import BadValueError, user_config_path
from broker.cluster.user_configs import change_user_configs, user_configs, users
from broker.quotas.sanitizer import desanitized, sanitized
from tests.support.stores import value_of


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("alice", "alice"),
        ("a-b_c.D9", "a-b_c.D9"),
        ("a b*c~d/e+f", "a%20b%2Ac%7Ed%2Fe%2Bf"),
        ("CN=ü,O=x", "CN%3D%C3%BC%2CO%3Dx"),
        ("<default>", "%3Cdefault%3E"),
        ("%41", "%2541"),
    ],
)
def test_names_are_encoded_as_kafkas_sanitizer_does(name: str, text: str) -> None:
    assert sanitized(name) == text
    assert desanitized(text) == name
    assert user_config_path(name) == f"/config/users/{text}"


@pytest.mark.parametrize("text", ["%", "%4", "a%zz"])
def test_what_nobody_has_encoded_stays(text: str) -> None:
    assert desanitized(text) == text


async def test_each_changes_what_is_his_and_leaves_the_rest(store: EmbeddedStore) -> None:
    assert await user_configs(store, "alice") == {}
    await change_user_configs(
        store,
        {
            "alice": lambda old: {**old, "producer_byte_rate": "1"},
            "b/b": lambda old: {**old, "x": "y"},
        },
    )
    await change_user_configs(store, {"alice": lambda old: {**old, "SCRAM-SHA-256": "s"}})
    assert await user_configs(store, "alice") == {"producer_byte_rate": "1", "SCRAM-SHA-256": "s"}
    value = await value_of(store, "/config/users/alice")
    assert value == b'{"version":1,"config":{"producer_byte_rate":"1","SCRAM-SHA-256":"s"}}'
    assert await users(store) == ["alice", "b%2Fb"]
    await change_user_configs(store, {"alice": lambda old: {}})
    assert await user_configs(store, "alice") == {}
    assert await users(store) == ["alice", "b%2Fb"]  # Kafka leaves the node, too


class Overtaken:
    """A store in which somebody else is faster, once."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.faster = True

    async def get(self, path: str) -> StoredNode | None:
        found = await self._store.get(path)
        if self.faster:
            self.faster = False
            await change_user_configs(self._store, {"alice": lambda old: {**old, "quota": "1"}})
        return found

    async def apply(self, operations: object) -> None:
        await self._store.apply(operations)  # type: ignore[arg-type]


@pytest.mark.parametrize("exists", [False, True])
async def test_a_change_that_is_overtaken_begins_anew(store: EmbeddedStore, exists: bool) -> None:
    if exists:
        await change_user_configs(store, {"alice": lambda old: {"first": "1"}})
    seen: list[Mapping[str, str]] = []

    def change(old: Mapping[str, str]) -> Mapping[str, str]:
        seen.append(old)
        return {**old, "own": "1"}

    await change_user_configs(Overtaken(store), {"alice": change})  # type: ignore[arg-type]
    first = {"first": "1"} if exists else {}
    assert seen == [first, {**first, "quota": "1"}]
    assert await user_configs(store, "alice") == {**first, "quota": "1", "own": "1"}


async def test_nodes_that_quotas_have_made_are_no_users_or_hold_nothing(
    store: EmbeddedStore,
) -> None:
    await store.create("/config/users/alice", b"")  # for the one below
    await store.create("/config/users/alice/clients/c", b'{"version":1,"config":{"x":"1"}}')
    await store.create("/config/users/<default>", b'{"version":1,"config":{"x":"1"}}')
    assert await users(store) == ["alice"]
    assert await user_configs(store, "alice") == {}
    await change_user_configs(store, {"alice": lambda old: {**old, "own": "1"}})
    assert await user_configs(store, "alice") == {"own": "1"}


async def test_a_node_that_cannot_be_read_is_told(store: EmbeddedStore) -> None:
    await store.create("/config/users/alice", b"x")
    with pytest.raises(BadValueError):
        await user_configs(store, "alice")
