"""DeleteRecords: the log start moves, never above the high watermark."""

import pytest

from broker.api.delete_records import DeleteRecordsHandler
from broker.replication.purgatory import DelayedOperation
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from storage.errors import StorageError
from storage.waits import at_once
from tests.support.broker_bench import Bench, batch, context


def delete(bench, offset, *, topic="t", version=2):
    message = DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)],
            )
        ],
    )
    codec = DeleteRecordsRequest.codec(version)
    message = codec.parse(codec.build(message))
    handler = DeleteRecordsHandler(bench.replicas)
    response = at_once(handler(context(version), message))
    codec = DeleteRecordsResponse.codec(version)
    (told,) = codec.parse(codec.build(response)).topics[0].partitions
    return told.error_code, told.low_watermark


def made(name="t", **topic):
    bench = Bench()
    (partition,) = bench.topic(name, **topic)
    partition.append_as_leader_nowait(batch([b"a", b"b", b"c"]))
    return bench


@pytest.mark.parametrize("version", range(3))
def test_s_ret_6_the_low_watermark_is_answered(version):
    bench = made()
    assert delete(bench, 2, version=version) == (0, 2)
    assert delete(bench, 0, version=version) == (0, 2)
    assert delete(bench, -1, version=version) == (0, 3)


@pytest.mark.parametrize("offset", [4, -2])
def test_s_ret_6_out_of_range(offset):
    assert delete(made(), offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_refusals():
    assert delete(made(), 1, topic="x") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    compacted = TopicConfig(cleanup_policy=frozenset({"compact"}))
    assert delete(made(config=compacted), 1) == (ErrorCode.POLICY_VIOLATION, -1)
    internal = "__consumer_offsets"
    assert delete(made(internal), 1, topic=internal) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


def test_a_failing_disk():
    bench = made()

    def broken(*_):
        raise StorageError("/data", "EIO")

    bench.replicas.find(("t", 0)).log.maybe_increment_log_start_offset = broken
    assert delete(bench, 1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert bench.logs.failed == ["/data"]


def test_a_fetch_that_waits_below_the_new_log_start_is_woken():
    bench = made()
    (partition,) = bench.replicas.partitions()
    woken = []

    class Waiting(DelayedOperation):
        def is_complete(self, key=None):
            return partition.log.log_start_offset >= 2

    waiting = Waiting()
    waiting.over.wake = lambda: woken.append(partition.log.log_start_offset)
    bench.replicas.purgatories.fetch.watch(waiting, [partition.topic_partition], 30)
    assert woken == []
    assert delete(bench, 1) == (0, 1)
    assert woken == []
    assert delete(bench, 2) == (0, 2)
    assert woken == [2]
