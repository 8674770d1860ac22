"""Batches that the broker has to open: small on the wire, large inside, or not what they say."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import CompressionType
from tests.hostile import bombs
from tests.hostile.attacks import create_topic, fetch, offset_at, produce
from tests.hostile.watch import watched
from tests.support.broker_process import BrokerProcess

MOST = 2**31 - 1
TOPIC = "victim"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With one topic, and room for a batch of a few megabytes."""
    with BrokerProcess(tmp_path, {"message.max.bytes": "8388608"}) as process:
        create_topic(process.port, TOPIC)
        yield process


def _from_several(port: int, batch: bytes, *, version: int = 9) -> list[ErrorCode | None]:
    """The same batch on four connections at once; the answers."""
    with ThreadPoolExecutor(4) as clients:
        sent = [clients.submit(produce, port, TOPIC, batch, version=version) for _ in range(4)]
    return [one.result() for one in sent]


def test_thirty_million_records_that_are_all_the_first(broker: BrokerProcess) -> None:
    batch = bombs.equal_records(30_000_000)
    with watched(broker):
        assert _from_several(broker.port, batch) == [ErrorCode.INVALID_RECORD] * 4


def test_three_million_honest_records(broker: BrokerProcess) -> None:
    batch = bombs.honest_records(3_000_000)
    with watched(broker):
        assert _from_several(broker.port, batch) == [ErrorCode.NONE] * 4


def test_ten_million_headers(broker: BrokerProcess) -> None:
    batch = bombs.many_headers(10_000_000)
    with watched(broker):
        _from_several(broker.port, batch)


def test_a_gigabyte_of_zeros(broker: BrokerProcess) -> None:
    batch = bombs.one_large_value(1 << 30)
    with watched(broker):
        _from_several(broker.port, batch)


def test_old_messages_that_have_to_be_converted(broker: BrokerProcess) -> None:
    batch = bombs.old_messages(2_500_000)
    with watched(broker):
        _from_several(broker.port, batch, version=2)


def test_counts_that_are_not_true(broker: BrokerProcess) -> None:
    with watched(broker):
        for _ in range(100):
            for batch in (bombs.lying_compressed(MOST), bombs.lying_plain(4, 2)):
                assert produce(broker.port, TOPIC, batch) == ErrorCode.INVALID_RECORD
    assert len(list((broker.log_dir / f"{TOPIC}-0").glob("*.log"))) == 1


def test_old_formats_of_many_records(broker: BrokerProcess) -> None:
    batch = bombs.honest_records(3_000_000, codec=CompressionType.GZIP)
    assert produce(broker.port, TOPIC, batch) == ErrorCode.NONE
    with watched(broker):
        assert fetch(broker.port, TOPIC, version=2)
        assert fetch(broker.port, TOPIC, version=2, offset=2_999_000)


def test_old_formats_of_fifty_megabytes(broker: BrokerProcess) -> None:
    batch = bombs.honest_records(7_000, b"v" * 1_000, CompressionType.NONE)
    for _ in range(7):
        assert produce(broker.port, TOPIC, batch) == ErrorCode.NONE
    with watched(broker):
        assert fetch(broker.port, TOPIC, version=2)


def test_a_time_within_three_million_records(broker: BrokerProcess) -> None:
    assert produce(broker.port, TOPIC, bombs.honest_records(3_000_000)) == ErrorCode.NONE
    with watched(broker):
        assert offset_at(broker.port, TOPIC, bombs.NOW_MS) == 0
        assert offset_at(broker.port, TOPIC, bombs.NOW_MS + 1) == -1


@pytest.mark.parametrize("size", [31 << 20, 255 << 20])
def test_eighty_small_batches_of_one_large_record(tmp_path: Path, size: int) -> None:
    batch = bombs.one_large_value(size)
    assert len(batch) < 9_000
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.port, TOPIC)
        with (
            watched(broker),
            children_watched(broker) as most,
            ThreadPoolExecutor(80) as clients,
        ):
            answers = list(clients.map(lambda _: produce(broker.port, TOPIC, batch), range(80)))
        is_opened = size < 32 << 20
        assert answers == [ErrorCode.NONE if is_opened else ErrorCode.INVALID_RECORD] * 80
        assert most[0] < 256 << 20
        assert bool(most[0]) == is_opened  # the others are seen through by a thread


@contextmanager
def children_watched(broker: BrokerProcess) -> Iterator[list[int]]:
    """The most bytes that all children together have been seen to hold."""
    most, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            sizes = []
            for child in psutil.Process(broker.pid).children():
                with suppress(psutil.NoSuchProcess):
                    sizes.append(child.memory_info().rss)
            most[0] = max(most[0], sum(sizes))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        ended.set()
        looking.join()
