"""Child processes that die, stand still or cannot be had: no disk fails, and nothing is lost.

All that a child does for clients (a batch that takes long to check, a Fetch of an old version, a
search for a time), and a compaction, meet each fault in a real broker.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.records.builder import build_batch
from tests.hostile.attacks import ask, create_topic, produce
from tests.hostile.bombs import NOW_MS
from tests.support.broker_process import BrokerProcess
from tests.support.heavy_batches import odd_sizes
from tests.support.private_machine import possible
from tests.support.topics import make_topic
from tests.support.waiting import wait_until

TOPIC: Final = "t"
COMPACTED: Final = "c"
COUNT: Final = 40_000
PATIENCE_S: Final = 60.0
ORDERLY_S: Final = 25.0
"""A stop waits up to ten seconds for requests that are in work."""
A_USER: Final = 54_017
"""A user without other processes, so its limit counts those of the broker only."""

AS_A_USER: Final = ("setpriv", f"--reuid={A_USER}", "--clear-groups", "--")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
in_namespaces = pytest.mark.skipif(not possible(), reason="no namespaces here")


def heavy_produce(broker: BrokerProcess) -> int:
    code = produce(broker.port, TOPIC, HEAVY)
    assert code is not None
    return int(code)


def old_fetch(broker: BrokerProcess) -> int:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(topic=TOPIC, partitions=[part])],
    )
    (part,) = ask(broker.port, ApiKey.FETCH, 2, request).responses[0].partitions
    assert part.error_code or part.records
    return int(part.error_code)


def search(broker: BrokerProcess) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=NOW_MS)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])]
    )
    (part,) = ask(broker.port, ApiKey.LIST_OFFSETS, 5, request).topics[0].partitions
    assert part.error_code or part.offset == 0
    return int(part.error_code)


HEAVY: Final = odd_sizes(COUNT, NOW_MS)

Work = Callable[[BrokerProcess], int]
WORKS: Final = [heavy_produce, old_fetch, search]


def ask_in_vain(work: Work, broker: BrokerProcess) -> None:
    """Ask while the broker stops: there may be an answer or none."""
    with suppress(AssertionError, AttributeError, OSError):
        work(broker)


@contextmanager
def serving(directory: Path, wrapper: Sequence[str] = (), **more: str) -> Iterator[BrokerProcess]:
    """Run a broker with a heavy batch in `TOPIC`, for which it has started a child."""
    settings = {
        "message.max.bytes": "8388608",
        "log.cleaner.backoff.ms": "200",
        "log.cleaner.min.cleanable.ratio": "0.01",
        **more,
    }
    with BrokerProcess(directory, settings, wrapper=wrapper) as broker:
        create_topic(broker.port, TOPIC)
        assert heavy_produce(broker) == ErrorCode.NONE
        yield broker
        assert_in_service(broker)


def assert_in_service(broker: BrokerProcess) -> None:
    assert broker.running, broker.output()
    assert "Stopping serving logs" not in broker.output(10_000_000), broker.output()
    assert produce(broker.port, TOPIC, build_batch([(NOW_MS, None, b"v", ())])) == ErrorCode.NONE


def children(broker: BrokerProcess) -> list[psutil.Process]:
    """Return the children that work for the broker."""
    return [
        child
        for child in psutil.Process(broker.pid).children()
        if child.status() != psutil.STATUS_ZOMBIE and child.nice() >= 10
    ]


def compact_one(broker: BrokerProcess) -> None:
    """Have the cleaner begin with a log of its own."""
    config = {"cleanup_policy": "compact", "segment_bytes": "1048576"}
    make_topic(broker.bootstrap, COMPACTED, **config)
    batch = build_batch([(NOW_MS, b"key", os.urandom(100_000), ())] * 5)
    for _ in range(12):
        assert produce(broker.port, COMPACTED, batch) == ErrorCode.NONE


def is_compacted(broker: BrokerProcess) -> bool:
    path = broker.log_dir / "cleaner-offset-checkpoint"
    return path.exists() and COMPACTED in path.read_text()


@pytest.mark.parametrize("work", WORKS)
def test_a_child_that_is_killed_over_its_work_is_not_noticed(tmp_path: Path, work: Work) -> None:
    with serving(tmp_path) as broker:
        (child,) = children(broker)
        child.suspend()
        codes: list[int] = []
        asking = threading.Thread(target=lambda: codes.append(work(broker)))
        asking.start()
        assert produce(broker.port, TOPIC, build_batch([(NOW_MS, None, b"v", ())])) == 0
        child.kill()
        asking.join(PATIENCE_S)
        assert codes == [ErrorCode.NONE]


@pytest.mark.parametrize("work", WORKS)
def test_a_child_that_stands_still_does_not_keep_the_broker_from_stopping(
    tmp_path: Path, work: Work
) -> None:
    with serving(tmp_path) as broker:
        (child,) = children(broker)
        child.suspend()
        asking = threading.Thread(target=ask_in_vain, args=(work, broker))
        asking.start()
        assert produce(broker.port, TOPIC, build_batch([(NOW_MS, None, b"v", ())])) == 0
        began = time.monotonic()
        broker.stop(PATIENCE_S)
        assert time.monotonic() - began < ORDERLY_S
        asking.join(PATIENCE_S)
        wait_until(lambda: not child.is_running(), 10)
        broker.start()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_cleaner_that_is_killed_or_stands_still(tmp_path: Path, number: int) -> None:
    slowly = {"log.cleaner.io.max.bytes.per.second": "200000"}
    with serving(tmp_path, **slowly) as broker:
        (other,) = children(broker)
        compact_one(broker)
        wait_until(lambda: len(children(broker)) == 2, PATIENCE_S)
        (cleaner,) = (child for child in children(broker) if child.pid != other.pid)
        cleaner.send_signal(number)
        if number == signal.SIGSTOP:
            began = time.monotonic()
            broker.stop(PATIENCE_S)
            assert time.monotonic() - began < ORDERLY_S
            wait_until(lambda: not cleaner.is_running(), 10)
        else:
            wait_until(lambda: "it is tried again" in broker.output(10_000_000), PATIENCE_S)
            broker.stop()
        broker.settings.pop("log.cleaner.io.max.bytes.per.second")
        broker.start()
        wait_until(lambda: is_compacted(broker), PATIENCE_S)


@as_root
def test_no_process_and_no_thread_can_be_had() -> None:
    with world_readable() as directory, serving(directory, AS_A_USER) as broker:
        limit_processes(broker, 1)
        children(broker)[0].kill()
        compact_one(broker)
        assert [ErrorCode(work(broker)) for work in WORKS] == [
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.OFFSET_NOT_AVAILABLE,
        ]
        wait_until(lambda: "it is tried again" in broker.output(10_000_000), PATIENCE_S)
        assert children(broker) == []
        assert_in_service(broker)
        limit_processes(broker, 1_000)
        for work in WORKS:
            assert work(broker) == ErrorCode.NONE
        wait_until(lambda: is_compacted(broker), PATIENCE_S)


@in_namespaces
def test_shared_memory_that_is_full_is_not_missed(tmp_path: Path) -> None:
    fill = (
        "mount -t tmpfs -o size=4k tmpfs /dev/shm; cat /dev/zero > /dev/shm/full 2> /dev/null;"
        ' exec "$@"'
    )
    with serving(tmp_path, ("unshare", "-rm", "bash", "-c", fill, "bash")) as broker:
        for work in WORKS:
            assert work(broker) == ErrorCode.NONE
        compact_one(broker)
        wait_until(lambda: is_compacted(broker), PATIENCE_S)


def limit_processes(broker: BrokerProcess, most: int) -> None:
    limit = ("prlimit", f"--pid={broker.pid}", f"--nproc={most}:")
    subprocess.run([*AS_A_USER, *limit], check=True)


@contextmanager
def world_readable() -> Iterator[Path]:
    """Make a directory that `A_USER` owns and can reach."""
    own = Path(tempfile.mkdtemp(prefix="child-processes-"))
    try:
        os.chown(own, A_USER, A_USER)
        yield own
    finally:
        shutil.rmtree(own)
