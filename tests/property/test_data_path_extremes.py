"""Requests that parse but make no sense: handlers answer, nothing breaks, good clients go on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.api.delete_records import DeleteRecordsHandler
from broker.api.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from protocol.errors import ErrorCode
from protocol.messages import (
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from tests.support.begun import begin
from tests.support.broker_bench import batch, context
from tests.support.produce_requests import one_batch
from tests.support.real_bench import RealBench

INT64 = st.sampled_from((0, 1, 2, 5, -1, -2, -3, -4, -5, -6, -7, 2**63 - 1, -(2**63), 10**12))
INT32 = st.sampled_from((0, 1, 2, -1, -2, 5, 2**31 - 1, -(2**31), 1000))
INT16 = st.sampled_from((0, 1, -1, 2, -(2**15), 2**15 - 1))
TOPIC = st.sampled_from(("t", "", "x", "__consumer_offsets", "t" * 300))


def asked_of(module, version, message, handler):
    name = "".join(part.title() for part in module.__name__.rpartition(".")[2].split("_"))
    request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    parsed = request.codec(version).parse(bytearray(request.codec(version).build(message)))
    begun = begin(handler(context(version), parsed))
    reply = begun.reply if begun.done else begun.leave()
    if reply is not None:
        for topic in getattr(reply, "responses", ()):
            for partition in getattr(topic, "partitions", ()):
                if not isinstance(partition.records, bytes):
                    partition.records = partition.records.read()
        response.codec(version).build(reply)
    blamed = handler.error_response(context(version), parsed, ErrorCode.UNKNOWN_SERVER_ERROR)
    if blamed is not None:
        response.codec(version).build(blamed)


def made():
    bench = RealBench()
    bench.topic("t", 2)
    for _ in range(3):
        assert bench.produce(batch([b"a", b"b"])).error_code == 0
    return bench


def still_serves(bench):
    reply = bench.produce(batch([b"last"]))
    assert reply.error_code == 0
    assert bench.values(reply.base_offset)[-1] == (reply.base_offset, b"last")
    assert bench.logs.offline_dirs == ()
    assert bench.purgatories.fetch.statistics().watchers == 0


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(),
    version=st.integers(0, 11),
    torn=st.one_of(st.binary(max_size=200), st.integers(0, 120)),
)
def test_produce(data, version, torn):
    bench = made()
    records = bytes(batch([b"value"]))
    if isinstance(torn, bytes):
        records = torn
    else:
        records = bytearray(records)
        records[torn % len(records)] ^= data.draw(st.integers(1, 255))
    message = one_batch(
        data.draw(TOPIC),
        records,
        partition=data.draw(INT32),
        acks=data.draw(INT16),
        timeout_ms=data.draw(INT32),
    )
    asked_of(produce, version, message, bench.produce_handler)
    still_serves(bench)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), version=st.integers(0, 17))
def test_fetch(data, version):
    bench = made()
    message = fetch.FetchRequest(
        max_wait_ms=data.draw(INT32),
        min_bytes=data.draw(INT32),
        max_bytes=data.draw(INT32),
        isolation_level=data.draw(st.sampled_from((0, 1, -1, 9))),
        session_id=data.draw(INT32) if version >= 7 else 0,
        session_epoch=data.draw(INT32) if version >= 7 else -1,
        **({"replica_id": data.draw(INT32)} if version < 15 else {}),
        topics=[
            fetch.FetchTopic(
                **({"topic": data.draw(TOPIC)} if version < 13 else {"topic_id": b"t" + b"." * 15}),
                partitions=[
                    fetch.FetchPartition(
                        partition=data.draw(INT32),
                        fetch_offset=data.draw(INT64),
                        partition_max_bytes=data.draw(INT32),
                        **({"current_leader_epoch": data.draw(INT32)} if version >= 9 else {}),
                        **({"last_fetched_epoch": data.draw(INT32)} if version >= 12 else {}),
                    )
                ],
            )
        ],
    )
    asked_of(fetch, version, message, bench.fetch_handler)
    still_serves(bench)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), version=st.integers(0, 11))
def test_list_offsets(data, version):
    bench = made()
    message = list_offsets.ListOffsetsRequest(
        replica_id=data.draw(INT32),
        topics=[
            list_offsets.ListOffsetsTopic(
                name=data.draw(TOPIC),
                partitions=[
                    list_offsets.ListOffsetsPartition(
                        partition_index=data.draw(INT32),
                        timestamp=data.draw(INT64),
                        **({"max_num_offsets": data.draw(INT32)} if version == 0 else {}),
                        **({"current_leader_epoch": data.draw(INT32)} if version >= 4 else {}),
                    )
                ],
            )
        ],
    )
    asked_of(list_offsets, version, message, bench.list_handler)
    still_serves(bench)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), version=st.integers(0, 2))
def test_delete_records_and_epochs(data, version):
    bench = made()
    message = delete_records.DeleteRecordsRequest(
        timeout_ms=data.draw(INT32),
        topics=[
            delete_records.DeleteRecordsTopic(
                name=data.draw(TOPIC),
                partitions=[
                    delete_records.DeleteRecordsPartition(
                        partition_index=data.draw(INT32), offset=data.draw(INT64)
                    )
                ],
            )
        ],
    )
    asked_of(delete_records, version, message, DeleteRecordsHandler(bench.replicas))
    message = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        topics=[
            offset_for_leader_epoch.OffsetForLeaderTopic(
                topic=data.draw(TOPIC),
                partitions=[
                    offset_for_leader_epoch.OffsetForLeaderPartition(
                        partition=data.draw(INT32), leader_epoch=data.draw(INT32)
                    )
                ],
            )
        ],
    )
    handler = OffsetForLeaderEpochHandler(bench.replicas)
    asked_of(offset_for_leader_epoch, version, message, handler)
    still_serves(bench)
