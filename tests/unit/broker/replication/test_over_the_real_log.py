"""The data path as clients see it: handlers, replication and the real log on an in-memory disk.

The rules of appends, reads and times one by one: `tests/unit/storage/log`.
"""

import threading

import pytest
import trio
import trio.testing

from broker.replication.partition import THREADED_APPEND_BYTES
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.records.compression import CompressionType, zstd_library
from protocol.types import TopicPartition
from storage.waits import at_once
from tests.support.broker_bench import batch
from tests.support.faulty_filesystem import UnreliableFile
from tests.support.real_bench import RealBench, fetched

CODECS = list(CompressionType)


@pytest.fixture(autouse=True, scope="module")
def libraries_are_loaded():
    """Else the first batch that needs one goes through a worker, in whichever test it comes."""
    import numpy  # noqa: F401

    zstd_library()


BIG = bytes(THREADED_APPEND_BYTES)
ROOMY = TopicConfig(max_message_bytes=2 * len(BIG))


def made(config=None, partitions=1, **where):
    bench = RealBench(**where)
    bench.topic("t", partitions, config=config)
    return bench


@pytest.fixture
def bench():
    return made()


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_fetched(bench, codec):
    for start in range(0, 30, 10):
        values = [b"value %d" % n for n in range(start, start + 10)]
        assert bench.produce(batch(values, codec=codec)).base_offset == start
    assert bench.values(0) == [(n, b"value %d" % n) for n in range(30)]
    assert bench.values(17) == [(n, b"value %d" % n) for n in range(17, 30)]
    assert bench.fetch(30).error_code == 0
    assert bench.fetch(31).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_producers_and_late_transactions_are_counted(bench):
    partition = bench.replicas.partition(TopicPartition("t", 0))
    for producer_id in (7, 8):
        partition.append_as_leader_nowait(
            batch(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        )

    def counted():
        statistics = at_once(bench.replicas.statistics())
        return statistics.producer_id_count, statistics.partitions_with_late_transactions_count

    assert counted() == (2, 0)
    bench.clock.advance(ms=900_000 + 300_000)
    assert counted() == (2, 0)
    bench.clock.advance(ms=1)
    assert counted() == (2, 1), "transaction.max.timeout.ms and five minutes"


def test_s_ts_6_the_answers_are_the_same_after_a_restart():
    bench = made(TopicConfig(segment_bytes=1000, index_interval_bytes=100))
    for number in range(50):
        bench.produce(batch([b"x" * 50], timestamp=1000 + 10 * number))
    asked = [bench.offset_for(time) for time in (-3, -2, -1, 0, 1005, 1250, 1490, 1491)]
    assert asked[4:] == [(0, 1010, 1), (0, 1250, 25), (0, 1490, 49), (0, -1, -1)]
    at_once(bench.logs.shutdown())
    for fs in (bench.fs, bench.fs.crash(keep_unsynced=True)):
        again = RealBench(fs=fs)
        again.topic("t", is_new=False)
        assert [again.offset_for(time) for time in (-3, -2, -1, 0, 1005, 1250, 1490, 1491)] == asked
        at_once(again.logs.shutdown())


@pytest.mark.usefixtures("loop")
async def test_a_parked_fetch_is_woken_by_a_big_append_in_a_thread():
    bench = made(ROOMY)
    parked = bench.fetch(0, max_wait_ms=500)
    reply = await bench.wait_produced(batch([BIG]))
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert parked.done
    assert len(fetched(parked.reply).records) > len(BIG)


@pytest.fixture
def goes_on(monkeypatch):
    """The write of a big batch waits for it."""
    event = threading.Event()
    write = UnreliableFile.pwrite

    def held(file, data, position):
        if len(data) > len(BIG):
            assert event.wait(5)
        write(file, data, position)

    monkeypatch.setattr(UnreliableFile, "pwrite", held)
    return event


@pytest.mark.usefixtures("loop")
async def test_deleting_a_topic_in_the_middle_of_a_threaded_append_harms_nobody(goes_on):
    bench = made(ROOMY)
    bench.topic("u")

    replies = []

    async def send(value):
        replies.append((await bench.wait_produced(batch([value]))).error_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, BIG)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(send, b"queued")
        await trio.testing.wait_all_tasks_blocked()
        bench.image.topics.pop("t")
        bench.replicas.delete_partition(TopicPartition("t", 0))
        goes_on.set()
    assert replies == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert bench.logs.offline_dirs == ()
    assert bench.produce(batch(), topic="u").error_code == 0
    bench.topic("t")
    assert bench.produce(batch()).base_offset == 0
