"""A log that is made in a new directory, and what recovery would have made of that directory."""

from random import Random
from typing import Any

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_dir import write_partition_metadata
from storage.log_manager import LogManager
from storage.new_log import make_files, new_log
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
TOPIC_ID = b"i" * 16
EXPIRATION_MS = 1234
NOT_COMPARED = ("__weakref__", "known_indexes")
"""Recovery has looked at the indexes."""


def made(fs: FileSystem, directory: str, config: TopicConfig) -> Log:
    make_files(fs, directory, TOPIC_ID)
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
    write_partition_metadata(fs, directory, TOPIC_ID, sync=False)
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


def managed(fs: FileSystem, log_dirs: str = "/a") -> LogManager:
    config = BrokerConfig.parse({"log.dirs": log_dirs, "broker.id": "1"})
    logs = log_manager(config, ManualClock(), fs)
    logs.startup(lambda _: TopicConfig())
    return logs


def test_what_a_directory_of_that_name_holds_is_recovered_not_overwritten() -> None:
    fs = FaultyFileSystem()
    logs = managed(fs)
    for name in ("u-0", "w-0"):
        fs.make_dirs(f"/a/{name}")
        fs.write_bytes(f"/a/{name}/00000000000000000007.log", b"")
    wanted = {name: TopicPartition(name, 0) for name in "uvwx"}
    at_once(logs.prepare((wanted[name], TOPIC_ID) for name in "wx"))
    bases = {
        name: logs.get_or_create_log(tp, TOPIC_ID, TopicConfig(), True).segments.base_offsets
        for name, tp in wanted.items()
    }
    assert bases == {"u": [7], "v": [0], "w": [7], "x": [0]}


def test_files_made_ahead_are_those_of_the_log_and_go_if_none_is_opened() -> None:
    fs = FaultyFileSystem()
    logs = managed(fs, "/a,/b")
    wanted = [TopicPartition("t", index) for index in range(200)]
    log = logs.get_or_create_log(wanted[0], TOPIC_ID, TopicConfig(), True)
    kept = log.dir
    at_once(logs.prepare((tp, TOPIC_ID) for tp in wanted))
    # On the directory with the fewest logs each, and once: the first has its log.
    names = {directory: set(fs.list_dir(directory)) for directory in ("/a", "/b")}
    found = [name for some in names.values() for name in some if name.startswith("t-")]
    assert sorted(found) == sorted(f"t-{index}" for index in range(200))
    assert {directory: sum("t-" in name for name in some) for directory, some in names.items()} == {
        "/a": 100,
        "/b": 100,
    }
    before = len(fs.operations)
    opened = logs.get_or_create_log(wanted[1], TOPIC_ID, TopicConfig(), True)
    other = logs.get_or_create_log(wanted[2], b"o" * 16, TopicConfig(), True)
    assert opened.topic_id == TOPIC_ID
    assert other.topic_id == b"o" * 16
    asked = {name for _, name in fs.operations[before:] if name.startswith(opened.dir)}
    assert asked == {f"{opened.dir}/leader-epoch-checkpoint"}
    at_once(logs.discard_prepared())
    left = {f"{d}/{name}" for d in ("/a", "/b") for name in fs.list_dir(d) if "t-" in name}
    assert left == {kept, opened.dir, other.dir}


def test_files_that_cannot_be_made_ahead_are_left_to_the_log() -> None:
    fs = FaultyFileSystem()
    logs = managed(fs)
    wanted = [TopicPartition("t", index) for index in range(3)]
    fs.fail("open", "/a/t-1/*.index")
    at_once(logs.prepare((tp, TOPIC_ID) for tp in wanted))
    assert {name for name in fs.list_dir("/a") if "t-" in name} == {"t-0"}
    for tp in wanted:
        assert logs.get_or_create_log(tp, TOPIC_ID, TopicConfig(), True).log_end_offset == 0
