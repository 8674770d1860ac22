"""Passwords of dynamic configs: as Kafka 3.9 encrypts them, and nothing else."""

from pathlib import Path
from random import Random

import pytest

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.password_encoder import CBC, GCM, PasswordEncoder
from broker.cluster.tree_values import broker_config_path, decode_config
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from protocol.errors import ErrorCode, KafkaError
from tests.support.stores import open_store, value_of

SECRET, PASSWORD = "a secret ü", "passä 😀 word"
GOLDEN = Path(__file__).parents[3] / "golden" / "passwords" / "kafka-3.9.0.txt"
NAME = "listener.name.plaintext.ssl.keystore.password"


def config(**props: str) -> BrokerConfig:
    return BrokerConfig.parse(
        {"broker.id": "1", **{name.replace("__", "."): text for name, text in props.items()}}
    )


def encoder(**props: str) -> PasswordEncoder:
    props.setdefault("password__encoder__secret", SECRET)
    return PasswordEncoder(config(**props), Random(1).randbytes)


@pytest.mark.parametrize("line", GOLDEN.read_text().splitlines())
def test_what_kafka_encrypted_is_read(line: str) -> None:
    assert encoder().decode(line) == PASSWORD
    old = encoder(password__encoder__secret="new", password__encoder__old__secret=SECRET)
    assert old.decode(line) == PASSWORD
    with pytest.raises(ConfigError, match=r"password\.encoder\.secret is another one"):
        encoder(password__encoder__secret="new").decode(line)


@pytest.mark.parametrize("cipher", [CBC, GCM])
@pytest.mark.parametrize("key_length", ["128", "256"])
@pytest.mark.parametrize("password", ["", "x", PASSWORD, "y" * 1000])
def test_what_is_encrypted_is_decrypted(cipher: str, key_length: str, password: str) -> None:
    one = encoder(
        password__encoder__cipher__algorithm=cipher, password__encoder__key__length=key_length
    )
    text = one.encode(password)
    assert password not in text or not password.strip("x")
    assert encoder().decode(text) == password
    assert one.encode(password) != text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("plain", "not encrypted as Kafka's"),
        ("", "not encrypted as Kafka's"),
        (GOLDEN.read_text().splitlines()[0].replace("salt:", "salz:"), "not encrypted as Kafka's"),
        (GOLDEN.read_text().splitlines()[0].replace("AES/CBC", "DES/CBC"), "not with DES/CBC"),
        (GOLDEN.read_text().splitlines()[0].replace("SHA512", "MD5"), "not with PBKDF2WithHmacMD5"),
        (GOLDEN.read_text().splitlines()[0].replace("h:13", "h:12"), "is another one"),
    ],
)
def test_what_kafka_would_not_have_written_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        encoder().decode(text)


def test_without_a_secret_nothing_is_read_or_written() -> None:
    none = PasswordEncoder(config(), Random(1).randbytes)
    for act in (none.encode, none.decode):
        with pytest.raises(ConfigError, match="Password encoder secret not configured"):
            act("x")


async def altered(store: EmbeddedStore, one: PasswordEncoder) -> DynamicBrokerConfig:
    configs = await DynamicBrokerConfig.load(config(), store, one)
    await configs.alter(lambda old: {NAME: PASSWORD}, for_cluster=False)
    return configs


async def test_a_password_of_this_broker_is_in_the_store_only_encrypted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await open_store(":memory:")
    configs = await altered(store, encoder())
    assert configs.current.originals[NAME] == PASSWORD
    path = broker_config_path(1)
    stored = decode_config(path, await value_of(store, path))[NAME]
    assert encoder().decode(stored) == PASSWORD
    again = await DynamicBrokerConfig.load(config(), store, encoder())
    assert again.current.originals[NAME] == PASSWORD
    assert not caplog.records
    stranger = encoder(password__encoder__secret="another")
    other = await DynamicBrokerConfig.load(config(), store, stranger)
    assert NAME not in other.current.originals
    await store.close()
    [record] = caplog.records
    assert NAME in record.getMessage()
    assert PASSWORD not in record.getMessage()


async def test_a_password_is_not_taken_without_a_secret() -> None:
    store = await open_store(":memory:")
    with pytest.raises(KafkaError, match="secret not configured") as refused:
        await altered(store, PasswordEncoder(config(), Random(1).randbytes))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert await store.get(broker_config_path(1)) is None
