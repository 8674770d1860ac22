import logging
from random import Random

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.user_configs import change_user_configs
from broker.security.scram_credentials import (
    SECRET_PATH,
    ScramCredentials,
    change_credentials,
    describe,
    describe_all,
)
from broker.security.scram_stand_ins import USUAL, Shape, shape_of
from protocol.sasl.scram import ScramCredential, ScramMechanism
from tests.support.stores import open_store, value_of

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def credential(name: str, iterations: int = 4096) -> ScramCredential:
    return ScramCredential(name.encode(), b"k" * 32, b"s" * 32, iterations)


async def loaded(store: EmbeddedStore, seed: int = 1) -> ScramCredentials:
    credentials = ScramCredentials(store)
    await credentials.load(Random(seed).getrandbits)
    return credentials


async def test_what_was_stored_is_found_after_a_start_and_what_changes_then_too(
    store: EmbeddedStore,
) -> None:
    await change_credentials(store, {"ä b": (SHA_256, credential("1"))})
    credentials = await loaded(store)
    assert await credentials.find(SHA_256, "ä b") == credential("1")
    assert await credentials.find(SHA_512, "ä b") is None
    await change_credentials(
        store, {"ä b": (SHA_512, credential("2")), "carol": (SHA_256, credential("3"))}
    )
    assert await credentials.find(SHA_256, "ä b") == credential("1")
    assert await credentials.find(SHA_512, "ä b") == credential("2")
    assert await credentials.find(SHA_256, "carol") == credential("3")
    await change_credentials(store, {"ä b": (SHA_256, None)})
    assert await credentials.find(SHA_256, "ä b") is None
    assert await credentials.find(SHA_512, "ä b") == credential("2")
    await store.delete("/config/users/carol")
    assert await credentials.find(SHA_256, "carol") is None


async def test_the_quotas_of_a_user_are_left_alone(store: EmbeddedStore) -> None:
    await change_user_configs(store, {"alice": lambda old: {"producer_byte_rate": "5"}})
    await change_credentials(store, {"alice": (SHA_256, credential("1"))})
    await change_credentials(store, {"alice": (SHA_256, None)})
    left = await value_of(store, "/config/users/alice")
    assert left == b'{"version":1,"config":{"producer_byte_rate":"5"}}'


async def test_credentials_are_described_without_a_listener_that_needs_them(
    store: EmbeddedStore,
) -> None:
    await change_user_configs(store, {"none": lambda old: {"producer_byte_rate": "5"}})
    await change_credentials(store, {"b": (SHA_512, credential("2", 8192))})
    await change_credentials(store, {"a": (SHA_256, credential("1"))})
    await change_credentials(store, {"b": (SHA_256, credential("3"))})
    assert await describe_all(store) == {
        "a": {SHA_256: credential("1")},
        "b": {SHA_256: credential("3"), SHA_512: credential("2", 8192)},
    }
    assert await describe(store, "nobody") == {}


async def test_what_is_no_credential_is_logged_and_counts_as_none(
    store: EmbeddedStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    await store.create("/config/users/broken", b"x")
    await change_user_configs(store, {"alice": lambda old: {"SCRAM-SHA-256": "secret"}})
    credentials = await loaded(store)
    assert await credentials.find(SHA_256, "alice") is None
    assert await credentials.find(SHA_256, "broken") is None
    assert "SCRAM-SHA-256 of user alice: Credentials not valid" in caplog.text
    assert "/config/users/broken" in caplog.text
    assert "secret" not in caplog.text


async def test_s_sec_3_an_unknown_user_always_gets_the_same_at_every_broker(
    store: EmbeddedStore,
) -> None:
    first = await loaded(store, 1)
    second = await loaded(store, 2)
    assert len(await value_of(store, SECRET_PATH)) == 32
    for mechanism, size in ((SHA_256, 32), (SHA_512, 64)):
        shown = first.stand_in(mechanism, "nobody")
        assert shown == second.stand_in(mechanism, "nobody")
        assert shown != first.stand_in(mechanism, "nobody2")
        assert len(shown.stored_key) == len(shown.server_key) == size
        assert 0 < int(shown.salt, 36) < 1 << 130  # as the salts of Kafka's tools
    other = await loaded(await open_store(), 3)
    assert other.stand_in(SHA_256, "nobody") != first.stand_in(SHA_256, "nobody")


async def test_s_sec_3_it_looks_like_the_users_that_there_are_now(store: EmbeddedStore) -> None:
    credentials = await loaded(store)

    async def shapes(mechanism: ScramMechanism) -> set[Shape]:
        await credentials.find(mechanism, "a")
        return {shape_of(credentials.stand_in(mechanism, f"nobody{n}")) for n in range(50)}

    assert await shapes(SHA_256) == {USUAL}
    for user in ("a", "b"):
        await change_credentials(store, {user: (SHA_256, credential("1", 8192))})
    await change_credentials(store, {"c": (SHA_256, credential("12", 5000))})
    assert await shapes(SHA_256) == {Shape(1, 8192), Shape(2, 5000)}
    assert await shapes(SHA_512) == {USUAL}
    await change_credentials(store, {"a": (SHA_256, None), "b": (SHA_256, credential("12", 5000))})
    assert await shapes(SHA_256) == {Shape(2, 5000)}
    tokens = {shape_of(credentials.stand_in(SHA_256, f"t{n}", by_token=True)) for n in range(50)}
    assert tokens == {USUAL}
    await change_credentials(store, {"b": (SHA_256, None), "c": (SHA_256, None)})
    assert await shapes(SHA_256) == {USUAL}
