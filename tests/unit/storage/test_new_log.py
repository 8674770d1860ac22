"""A log that is made in a new directory, and what recovery would have made of that directory."""

from random import Random
from typing import Any

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.new_log import new_log
from storage.recovery import LoadOptions, load_log
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
TOPIC_ID = b"i" * 16
EXPIRATION_MS = 1234
NOT_COMPARED = ("__weakref__", "known_indexes")
"""Recovery has looked at the indexes."""


def made(fs: FileSystem, directory: str, config: TopicConfig) -> Log:
    return new_log(
        fs,
        ManualClock(),
        directory,
        TP,
        config,
        Random(1),
        topic_id=TOPIC_ID,
        producer_expiration_ms=EXPIRATION_MS,
    )


def loaded(fs: FileSystem, directory: str, config: TopicConfig) -> Log:
    options = LoadOptions(
        config=config, clean=False, topic_id=TOPIC_ID, producer_expiration_ms=EXPIRATION_MS
    )
    return load_log(fs, ManualClock(), directory, TP, options, Random(1))


def state_of(part: Any, depth: int = 6) -> Any:
    """Return all that slots hold, as plain values; objects without slots by their class."""
    if isinstance(part, dict):
        return {key: state_of(value, depth) for key, value in part.items()}
    if isinstance(part, tuple | list):
        return [state_of(value, depth) for value in part]
    if isinstance(part, int | str | bytes | float | None):
        return part
    slots = [name for cls in type(part).__mro__ for name in getattr(cls, "__slots__", ())]
    if not slots or not depth or callable(part):
        return type(part).__name__
    held = {name: getattr(part, name, None) for name in slots if name not in NOT_COMPARED}
    return {name: state_of(value, depth - 1) for name, value in held.items()}


@pytest.mark.parametrize("preallocate", [False, True])
def test_a_new_log_is_as_recovery_opens_it_in_an_empty_directory(preallocate: bool) -> None:
    fs = FaultyFileSystem()
    config = TopicConfig(preallocate=preallocate)
    outcomes = []
    for make in (made, loaded):
        fs.make_dirs("/d/t-0")
        log = make(fs, "/d/t-0", config)
        outcomes.append(
            (
                fs.sizes("/d/t-0"),
                state_of(log.offsets),
                state_of(log.durability),
                state_of(log.producers),
                state_of(log.leader_epochs),
                state_of(log.segments.active),
                (log.topic_id, log.segments.base_offsets, log.config),
            )
        )
        fs.remove_tree("/d/t-0")
    assert outcomes[0] == outcomes[1]


def test_what_a_directory_of_that_name_holds_is_recovered_not_overwritten() -> None:
    fs = FaultyFileSystem()
    fs.make_dirs("/a/t-0")
    fs.write_bytes("/a/t-0/00000000000000000007.log", b"")
    logs = log_manager(BrokerConfig.parse({"log.dirs": "/a", "broker.id": "1"}), ManualClock(), fs)
    logs.startup(lambda _: TopicConfig())
    fs.make_dirs("/a/u-0")
    fs.write_bytes("/a/u-0/00000000000000000007.log", b"")
    found = logs.get_or_create_log(TopicPartition("u", 0), TOPIC_ID, TopicConfig(), True)
    assert found.segments.base_offsets == [7]
    fresh = logs.get_or_create_log(TopicPartition("v", 0), TOPIC_ID, TopicConfig(), True)
    assert fresh.segments.base_offsets == [0]
