"""S-GRP-5: a partition's groups come back from its log, and nothing is served before."""

import struct

import pytest

from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.data.records import OffsetRecord
from broker.coordinator.group.data.serde import encode_record
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import OFFSETS_TOPIC, TopicPartition
from storage.waits import Signal
from tests.support.begun import begin
from tests.support.group_harness import SESSION_MS, GroupHarness
from tests.support.refusals import code_of


def partition_of(groups: GroupHarness, group: str = "g") -> TopicPartition:
    return TopicPartition(OFFSETS_TOPIC, groups.coordinator.partition_for(group))


def offset_record(offset: int, group: str = "g", partition: int = 0) -> OffsetRecord:
    committed = CommittedOffset(offset=offset, commit_timestamp_ms=1)
    return OffsetRecord((group, "t", partition), committed)


def batch_of(*records: OffsetRecord, **options: object) -> bytes:
    return build_batch(
        [(1, key, value, ()) for key, value in map(encode_record, records)],
        **options,  # type: ignore[arg-type]
    )


def test_s_grp_5_groups_and_offsets_come_back(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    groups.commit(9, member_id=ids[0], generation=generation, metadata="m", leader_epoch=3)
    again = groups.restarted()
    group = again.group()
    assert group.state is GroupState.STABLE
    assert (group.generation, group.leader_id, group.protocol_name) == (generation, ids[0], "range")
    assert group.subscribed_topics == {"t"}
    assert [one.assignment for one in group.members.values()] == [one.encode() for one in ids]
    found = again.offset()
    assert (found.offset, found.metadata, found.leader_epoch) == (9, "m", 3)
    for one in ids:
        assert again.heartbeat(one, generation) is ErrorCode.NONE
    commit = again.commit(10, member_id=ids[1], generation=generation)
    assert commit.reply is ErrorCode.NONE


def test_s_grp_5_sessions_begin_anew_after_loading(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    groups.clock.advance(3600)
    again = groups.restarted()
    again.advance_ms(SESSION_MS - 1)
    assert again.heartbeat(ids[0], generation) is ErrorCode.NONE
    again.advance_ms(1)
    assert list(again.group().members) == [ids[0]]


def test_s_grp_5_an_empty_group_stays_empty_with_the_time_it_became_so(
    groups: GroupHarness,
) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    since = groups.group().state_timestamp_ms
    again = groups.restarted()
    assert again.group().state is GroupState.EMPTY
    assert again.group().state_timestamp_ms == since
    assert again.group().protocol_type == "consumer"


def test_s_grp_5_requests_are_refused_while_loading(groups: GroupHarness) -> None:
    generation, (member_id,) = groups.stable_group()
    again = GroupHarness(log=groups.log, clock=groups.clock)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert again.join().reply.error is loading
    assert again.sync(member_id, generation).reply.error is loading
    assert again.leave(member_id).error is loading
    assert again.commit(1).reply is loading
    assert again.heartbeat(member_id, generation) is ErrorCode.NONE
    assert code_of(again.coordinator.fetch_offset, "g") is loading
    assert code_of(again.coordinator.describe, "g") is loading
    assert code_of(again.coordinator.list_groups) is loading
    assert not again.join(group="elsewhere-0").done  # its partition is empty
    again.load()
    assert again.heartbeat(member_id, generation) is ErrorCode.NONE


def test_s_grp_5_an_empty_partition_needs_no_loading(groups: GroupHarness) -> None:
    assert not groups.join().done
    assert groups.log.reads == 0


def test_s_grp_5_a_partition_led_elsewhere(groups: GroupHarness) -> None:
    groups.log.led = {}
    assert groups.join().reply.error is ErrorCode.NOT_COORDINATOR
    assert groups.commit(1).reply is ErrorCode.NOT_COORDINATOR
    groups.log.led = {partition_of(groups): 0}
    assert groups.commit(1).reply is ErrorCode.NONE


def test_an_offsets_topic_made_anew_holds_nothing_of_the_old_one(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    groups.commit(9, member_id=ids[0], generation=generation)
    waiting = groups.join(ids[0])
    assert not waiting.done
    groups.log.drop()
    groups.log.led = {}
    groups.coordinator.on_topics_deleted([OFFSETS_TOPIC])
    assert waiting.reply.error is ErrorCode.NOT_COORDINATOR
    assert groups.heartbeat(ids[1], generation) is ErrorCode.NOT_COORDINATOR
    assert len(groups.coordinator._timers) == 0
    groups.log.led = None  # made anew: its leader epochs begin at 0 again
    assert groups.heartbeat(ids[1], generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.committed() is None
    groups.commit(3)
    assert groups.committed() == 3
    assert groups.restarted().committed() == 3
    groups.advance_ms(2 * SESSION_MS)


def test_a_load_under_way_ends_with_its_topic(groups: GroupHarness) -> None:
    groups.stable_group(1)
    again = GroupHarness(log=groups.log, clock=groups.clock)
    with pytest.raises(KafkaError):
        again.coordinator.fetch_offset("g")
    again.log.drop()
    again.coordinator.on_topics_deleted([OFFSETS_TOPIC])
    again.load()
    assert again.statistics().loading.loads == 0
    assert again.shard().group("g") is None


def test_a_partition_is_loaded_anew_only_after_it_was_led_elsewhere(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(1)
    joined = groups.join(ids[0])
    joined_generation = joined.reply.generation
    assert joined_generation == generation + 1
    partition = partition_of(groups).partition
    for epoch in (0, 1):  # known already; the same leader with a higher epoch
        groups.coordinator.on_elected(partition, epoch)
        assert groups.group().generation == generation + 1
    groups.coordinator.on_resigned(partition)
    groups.coordinator.on_elected(partition, 2)
    groups.load()
    assert groups.group().generation == generation  # what had been written


def test_s_grp_5_the_last_record_wins_and_tombstones_remove(groups: GroupHarness) -> None:
    tp = partition_of(groups)
    for offset in (1, 2, 3):
        groups.log.append(tp, batch_of(offset_record(offset), offset_record(offset, partition=1)))
    groups.log.append(tp, batch_of(OffsetRecord(("g", "t", 1), None)))
    groups.load()
    assert groups.committed() == 3
    assert groups.committed(partition=1) is None
    assert (groups.group().protocol_type, len(groups.group().members)) == (None, 0)


def test_a_log_is_read_in_slices_and_others_run_between_records(groups: GroupHarness) -> None:
    tp = partition_of(groups)
    for start in range(0, 1_000, 100):
        records = [offset_record(one, partition=one) for one in range(start, start + 100)]
        groups.log.append(tp, batch_of(*records))
    again = GroupHarness(log=groups.log, load_buffer_bytes=10_000)
    again.coordinator.on_elected(tp.partition, 0)
    load = begin(again.coordinator._runtime.tasks.waiting.popleft()())
    assert load.done
    assert again.log.reads > 3
    assert load.pauses >= 2 * 1_000, "where it is read, and where it is replayed"
    assert again.statistics().offsets == 1_000
    assert again.statistics().loading.loaded_records == 1_000


def test_two_partitions_are_loaded_at_once(
    groups: GroupHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    tps = [TopicPartition(OFFSETS_TOPIC, index) for index in range(4)]
    for tp in tps:
        groups.log.append(tp, batch_of(offset_record(1)))
    read = groups.log.read
    reading: dict[int, Signal[None]] = {}

    async def held(tp: TopicPartition, *where: int) -> bytes:
        reading[tp.partition] = Signal()
        await reading[tp.partition]
        return await read(tp, *where)

    monkeypatch.setattr(groups.log, "read", held)
    waiting = groups.coordinator._runtime.tasks.waiting
    for tp in tps:
        groups.coordinator.on_elected(tp.partition, 0)
    loads = [begin(make()) for make in waiting]
    assert list(reading) == [0, 1]
    reading[1].fire()
    assert [load.done for load in loads] == [False, True, False, False]
    assert list(reading) == [0, 1, 2]
    reading[0].fire()
    assert [load.done for load in loads] == [True, True, False, False]
    assert list(reading) == [0, 1, 2, 3]
    reading[2].fire()
    reading[3].fire()
    assert all(load.done for load in loads)


def test_compressed_offset_batches(groups: GroupHarness) -> None:
    again = GroupHarness(log=groups.log, compression=CompressionType.GZIP)
    again.commit(5)
    assert groups.restarted().committed() == 5


def test_newer_kinds_of_records_are_left_alone(groups: GroupHarness) -> None:
    tp = partition_of(groups)
    consumer_group_key = struct.pack(">hh", 3, 1) + b"g"
    batch = build_batch([(1, consumer_group_key, b"\x00\x00whatever", ())])
    groups.log.append(tp, batch)
    groups.log.append(tp, batch_of(offset_record(5)))
    groups.load()
    assert groups.committed() == 5
    assert groups.shard().skipped_records == 0


def test_a_record_that_cannot_be_read_costs_only_itself(
    groups: GroupHarness, caplog: pytest.LogCaptureFixture
) -> None:
    tp = partition_of(groups)
    key, _ = encode_record(offset_record(1, partition=3))
    other_key, _ = encode_record(offset_record(1, partition=4))
    bad = [
        (1, None, b"x", ()),
        (1, b"", b"x", ()),
        (1, b"\x00\x01\x00\x7fg", b"x", ()),
        (1, key, b"\x00\x63rest", ()),
        (1, other_key, b"\x00\x03", ()),
    ]
    groups.log.append(tp, build_batch(bad))
    groups.log.append(tp, batch_of(offset_record(5)))
    groups.load()
    assert groups.committed() == 5
    assert groups.shard().skipped_records == len(bad)
    assert "Skipped the record at offset 1" in caplog.text


def test_a_corrupt_batch_fails_the_partition_and_no_other(groups: GroupHarness) -> None:
    tp = partition_of(groups)
    groups.log.append(tp, batch_of(offset_record(5)))
    batch = bytearray(groups.log.batches[tp][0])
    batch[8:12] = struct.pack(">i", 3)
    groups.log.batches[tp][0] = bytes(batch)
    groups.load()
    assert groups.commit(1).reply is ErrorCode.NOT_COORDINATOR
    assert groups.commit(1, group="elsewhere-0").reply is ErrorCode.NONE
    assert groups.statistics().loading.partitions["failed"] == 1


def test_offsets_in_transactions_are_loaded_with_their_outcome(groups: GroupHarness) -> None:
    tp = partition_of(groups)
    options = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}

    def marker(producer_id: int, outcome: ControlType) -> bytes:
        return build_end_transaction_marker(
            outcome, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=1
        )

    for producer_id in (1, 2, 3):
        record = offset_record(10 * producer_id, partition=producer_id)
        groups.log.append(tp, batch_of(record, producer_id=producer_id, **options))
    groups.log.append(tp, marker(1, ControlType.COMMIT))
    groups.log.append(tp, marker(2, ControlType.ABORT))
    groups.load()
    assert groups.committed(partition=1) == 10
    assert groups.committed(partition=2) is None
    assert groups.committed(partition=3) is None
    assert groups.coordinator.unstable_offsets("g")("t", 3)
    assert not groups.coordinator.unstable_offsets("g")("t", 1)


def test_the_partition_of_a_group_is_javas(groups: GroupHarness) -> None:
    from broker.cluster.java_hash import java_length, java_string_hash
    from broker.coordinator.hashing import coordinator_partition

    # Values of java.lang.String.hashCode.
    assert [java_length(text) for text in ("", "a", "ü组", "\U0001f600")] == [0, 1, 2, 2]
    assert java_string_hash("") == 0
    assert java_string_hash("a") == 97
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("polygenelubricants") == -(2**31)
    assert java_string_hash("console-consumer-12345") == _java("console-consumer-12345")
    assert java_string_hash("gruppe-ü-组-\U0001f600") == _java("gruppe-ü-组-\U0001f600")
    assert coordinator_partition("polygenelubricants", 50) == 0
    assert coordinator_partition("hello", 50) == 22
    # Negative ones: not the remainder (19), and not the bits below the sign (17).
    assert java_string_hash("orders") == -1008770331
    assert coordinator_partition("orders", 50) == 31
    assert (
        groups.coordinator.partition_for("orders")
        == 1008770331 % groups.coordinator.settings.partition_count
    )


def _java(text: str) -> int:
    """`String.hashCode` by its definition: sum of s[i] * 31^(n-1-i) over UTF-16 units."""
    units = struct.unpack(f">{len(text.encode('utf-16-be')) // 2}H", text.encode("utf-16-be"))
    total = sum(unit * 31 ** (len(units) - 1 - at) for at, unit in enumerate(units))
    return (total + 2**31) % 2**32 - 2**31
