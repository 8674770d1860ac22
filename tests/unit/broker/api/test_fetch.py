"""Fetch: what comes at once, what waits, and what wakes it."""

from types import SimpleNamespace

import pytest

from broker.api import fetch
from broker.coordinator.partition_writer import replicated
from broker.replication import read_plan
from broker.world.in_turn import begin
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.records.batch import iter_batches
from protocol.records.compression import CompressionType
from storage.errors import StorageError
from storage.waits import at_once
from tests.support.broker_bench import batch, led
from tests.support.fetch_bench import IDS, Asked, only, partitions_of, topic_id
from tests.support.message_sets import records_in


def base_offsets(partition):
    return [header.base_offset for _, header in iter_batches(partition.records)]


@pytest.mark.parametrize("version", range(4, 18))
def test_data_is_answered_in_every_version(asked, version):
    asked.append(b"a", b"b")
    asked.append(b"c")
    response = asked.fetch({0: 0}, version)
    partition = only(response)
    assert (partition.error_code, partition.high_watermark) == (0, 3)
    assert (partition.last_stable_offset, partition.preferred_read_replica) == (3, -1)
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    assert base_offsets(partition) == [0, 2]
    (topic,) = response.responses
    assert topic.topic_id == topic_id("t") if version >= IDS else topic.topic == "t"
    assert not partition.aborted_transactions


def test_s_read_1_at_the_log_end_there_is_nothing_and_no_error(asked):
    asked.append()
    partition = only(asked.fetch({0: 1}, max_wait=0))
    assert (partition.error_code, partition.high_watermark, len(partition.records)) == (0, 1, 0)


@pytest.mark.parametrize("offset", [-1, 1, 4, 99])
def test_s_read_1_out_of_range_is_told_at_once_with_the_range(asked, offset):
    asked.append(b"a", b"b", b"c")
    asked.partitions[0].delete_records(2)
    partition = only(asked.fetch({0: offset}))
    assert partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (partition.high_watermark, partition.log_start_offset) == (3, 2)
    assert len(partition.records) == 0


def test_s_read_4_the_first_batch_comes_whole_however_large():
    asked = Asked(partitions=3)
    for index in range(3):
        asked.append(b"x" * 1000, index=index)
    response = asked.fetch({0: 1, 1: 0, 2: 0}, max_bytes=100, partition_max_bytes=50)
    sizes = [len(p.records) for p in partitions_of(response)]
    assert sizes[0] == 0
    assert sizes[1] > 1000
    assert sizes[2] == 0


def test_s_read_4_v2_and_below_get_a_cut_batch_that_says_too_large(asked):
    asked.append(b"x" * 1000)
    records = only(asked.fetch({0: 0}, 2, partition_max_bytes=50)).records
    assert len(records) == 12
    assert int.from_bytes(records[8:12], "big") == 0x7FFFFFFF


def test_s_read_4_the_budget_is_spent_in_order():
    asked = Asked(partitions=3)
    size = len(batch([b"x" * 100]))
    for index in range(3):
        for _ in range(3):
            asked.append(b"x" * 100, index=index)
    response = asked.fetch({0: 0, 1: 0, 2: 0}, max_bytes=5 * size, partition_max_bytes=3 * size)
    assert [len(p.records) for p in partitions_of(response)] == [3 * size, 2 * size, 0]


def test_s_read_6_the_order_of_the_request_is_the_order_of_the_answer():
    asked = Asked(partitions=3)
    asked.bench.topic("u")
    for index in range(3):
        asked.append(index=index)
    response = asked.fetch({"t": {2: 0, 0: 0, 1: 0}, "u": {0: 0}})
    told = [(t.topic, [p.partition_index for p in t.partitions]) for t in response.responses]
    assert told == [("t", [2, 0, 1]), ("u", [0])]


def test_s_read_9_fetch_max_bytes_caps_the_request():
    asked = Asked(fetch_max_bytes=1024)
    for _ in range(50):
        asked.append(b"x" * 100)
    assert len(only(asked.fetch({0: 0}, max_bytes=1 << 30)).records) <= 1024


def test_s_read_5_read_committed_stops_at_the_last_stable_offset_with_aborted_list(asked):
    log = asked.partitions[0].log
    for _ in range(3):
        asked.append()
    log.first_unstable = 2
    log.aborted = [SimpleNamespace(producer_id=9, first_offset=0)]
    partition = only(asked.fetch({0: 0}, isolation=1))
    assert base_offsets(partition) == [0, 1]
    assert (partition.high_watermark, partition.last_stable_offset) == (3, 2)
    assert [(a.producer_id, a.first_offset) for a in partition.aborted_transactions] == [(9, 0)]
    assert partition.aborted_transactions is not None
    uncommitted = only(asked.fetch({0: 0}))
    assert base_offsets(uncommitted) == [0, 1, 2]
    assert uncommitted.aborted_transactions is None


def test_s_read_5_after_many_aborted_transactions_the_other_partitions_come_next_time(monkeypatch):
    monkeypatch.setattr(read_plan, "MOST_ABORTED", 2)
    asked = Asked(partitions=3)
    for index in range(3):
        asked.append(index=index)
        told = [SimpleNamespace(producer_id=one, first_offset=0) for one in range(2)]
        asked.partitions[index].log.aborted = told
    found = partitions_of(asked.fetch({0: 0, 1: 0, 2: 0}, isolation=1))
    assert [base_offsets(partition) for partition in found] == [[0], [0], []]
    assert {partition.error_code for partition in found} == {0}


# --------------------------------------------------------------------------- waiting


def test_s_read_6_no_data_parks_and_an_append_wakes():
    asked = Asked(partitions=2)
    pending = asked.park({0: 0, 1: 0})
    asked.append(index=1)
    partitions = partitions_of(asked.done(pending))
    assert [len(p.records) > 0 for p in partitions] == [False, True]
    asked.nothing_is_parked()


def test_s_read_6_max_wait_ends_it_empty_handed(asked):
    pending = asked.park(max_wait=500)
    asked.bench.advance(0.49)
    assert not pending.done
    asked.bench.advance(0.02)
    assert len(only(asked.done(pending)).records) == 0
    asked.nothing_is_parked()


def test_s_read_6_min_bytes_accumulate_over_partitions():
    asked = Asked(partitions=2)
    size = len(batch([b"x" * 100]))
    asked.append(b"x" * 100)
    pending = asked.park({0: 0, 1: 0}, min_bytes=3 * size)
    asked.append(b"x" * 100, index=1)
    assert not pending.done
    asked.append(b"x" * 100, index=1)
    sizes = [len(p.records) for p in partitions_of(asked.done(pending))]
    assert sizes == [size, 2 * size]


def test_s_read_6_what_a_partition_may_not_give_does_not_count():
    asked = Asked(partitions=2)
    size = len(batch())
    pending = asked.park({0: 0, 1: 0}, min_bytes=3 * size, partition_max_bytes=size)
    for _ in range(5):
        asked.append()
    assert not pending.done
    asked.append(index=1)
    assert not pending.done
    asked.bench.advance(1)
    assert [len(p.records) for p in partitions_of(asked.done(pending))] == [size, size]


def test_s_read_6_a_parked_fetch_is_checked_without_reading(asked):
    pending = asked.park(min_bytes=10_000)
    reads = asked.partitions[0].log.reads
    for _ in range(20):
        asked.append()
    assert asked.partitions[0].log.reads == reads
    assert not pending.done


def test_s_read_6_a_consumer_wakes_on_the_high_watermark_not_on_the_append():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    pending = asked.park()
    asked.append()
    assert not pending.done
    follower = asked.raw({0: 1}, replica=2, max_wait=0)
    assert only(follower.reply).high_watermark == 1
    assert base_offsets(only(asked.done(pending))) == [0]


@pytest.mark.parametrize(("min_bytes", "done"), [(1, True), (2, False)])
def test_s_read_6_what_was_appended_before_it_was_parked_counts_as_a_byte(min_bytes, done):
    """Only the watermark came since: how many bytes that shows is not known without reading."""
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    asked.append()
    pending = asked.park(min_bytes=min_bytes)
    assert asked.raw({0: 1}, replica=2, max_wait=0).done
    assert pending.done == done


def test_s_read_6_a_follower_wakes_on_the_append():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    pending = asked.park({0: 0}, replica=2)
    asked.append()
    partition = only(asked.done(pending))
    assert base_offsets(partition) == [0]
    assert partition.last_stable_offset == -1


def test_s_read_6_what_a_follower_sets_off_by_its_arrival_it_is_given_at_once():
    """A transaction coordinator appends markers as soon as its decision is replicated."""
    asked = Asked(partitions=2, replicas=(1, 2), isr=(1, 2))
    asked.append(index=1)
    decided = asked.partitions[1]

    async def carry_out():
        info = SimpleNamespace(first_offset=0, last_offset=0)
        assert await replicated(asked.bench.replicas, decided, info, 30) == ErrorCode.NONE
        asked.append(b"marker", index=0)

    begin(carry_out())
    # Partition 0 is read first, and is empty then.
    pending = asked.raw({0: 0, 1: 1}, replica=2)
    partitions = partitions_of(asked.done(pending))
    assert [len(p.records) > 0 for p in partitions] == [True, False]
    asked.nothing_is_parked()


@pytest.mark.parametrize("version", [12, 17])
def test_a_broker_that_is_no_replica_cannot_follow(asked, version):
    partition = only(asked.fetch({0: 0}, version, replica=9))
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition = only(asked.fetch({0: 0}, version, replica=9, current_leader_epoch=0))
    assert partition.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_s_read_6_deleting_records_wakes(asked):
    asked.append(b"a")
    pending = asked.park({0: 1}, min_bytes=1000)
    asked.append(b"b", b"c")
    asked.partitions[0].delete_records(3)
    asked.bench.replicas.wake(asked.partitions[0])
    assert only(asked.done(pending)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_s_read_6_deleting_the_topic_wakes(asked):
    pending = asked.park()
    asked.bench.image.topics.clear()
    asked.bench.replicas.delete_partition(asked.partitions[0].topic_partition)
    assert only(asked.done(pending)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked.nothing_is_parked()


def test_s_read_6_a_failing_disk_wakes():
    asked = Asked(partitions=2)
    pending = asked.park({1: 0})
    asked.bench.replicas.storage_failed(asked.partitions[0], StorageError("/data", "gone"))
    assert only(asked.done(pending)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_s_read_6_a_new_leader_epoch_wakes_who_knows_the_old_one(asked):
    pending = asked.park(version=16, current_leader_epoch=0)
    (partition,) = asked.partitions
    asked.bench.replicas.make_leader(
        partition.topic_partition, partition.topic_id, led(1), partition.log.config
    )
    told = only(asked.done(pending))
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (1, 1)


def test_an_abandoned_fetch_leaves_nothing():
    asked = Asked(partitions=3)
    pending = asked.park({0: 0, 1: 0, 2: 0})
    pending.leave()
    asked.nothing_is_parked()
    asked.append()
    assert asked.bench.purgatories.fetch.statistics().abandoned == 1


def test_a_bug_in_a_parked_fetch_does_not_reach_the_producer_that_woke_it(asked):
    pending = asked.park()

    def broken(*_):
        raise ZeroDivisionError

    asked.partitions[0].log.read = broken
    asked.append()
    with pytest.raises(ZeroDivisionError):  # what the connection answers
        _ = pending.reply
    asked.nothing_is_parked()


def test_the_turn_of_the_append_reads_nothing_for_the_followers_that_it_wakes():
    asked = Asked(partitions=2)
    followers = [asked.park({0: 0, 1: 0}) for _ in range(5)]
    reads, read = [], asked.partitions[0].log.read

    def noted(*how):
        reads.append(how)
        return read(*how)

    asked.partitions[0].log.read = noted
    asked.append()
    asked.append()
    statistics = asked.bench.purgatories.fetch.statistics()
    assert (statistics.completed, statistics.parked, reads) == (5, 0, [])
    for pending in followers:
        assert all(data.records for data in only_with_records(asked.done(pending)))
    assert reads
    asked.nothing_is_parked()


def only_with_records(response):
    answered = [data for topic in response.responses for data in topic.partitions]
    assert [data.partition_index for data in answered] == [0, 1]
    return answered[:1]


def test_a_fetch_that_was_woken_is_not_timed_out_before_it_goes_on(asked):
    pending = asked.park(max_wait=500)
    asked.append()
    asked.bench.advance(1)
    assert only(asked.done(pending)).records
    statistics = asked.bench.purgatories.fetch.statistics()
    assert (statistics.completed, statistics.expired) == (1, 0)


def test_a_read_error_of_the_disk_is_answered_and_takes_the_directory_offline(asked):
    asked.append()
    asked.partitions[0].log.fail_with = StorageError("/data", "EIO")
    for version, code in ((5, 6), (6, 56)):
        assert only(asked.fetch({0: 0}, version)).error_code == code
    assert asked.bench.logs.failed == ["/data"]


def test_a_fetch_of_nothing_is_answered_at_once(asked):
    assert asked.fetch({}).responses == []


# --------------------------------------------------------------------------- errors


def test_unknown_partitions_are_answered_at_once_when_there_are_no_others(asked):
    assert only(asked.fetch({5: 0})).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(asked.fetch({0: 0}, topic="x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = only(asked.fetch({0: 0}, 13, topic="x"))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_unknown_partitions_do_not_cut_the_wait_of_others_short(asked):
    pending = asked.park({0: 0, 7: 0})
    asked.append()
    told = [(p.partition_index, p.error_code) for p in partitions_of(asked.done(pending))]
    assert told == [(0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize(("epoch", "code"), [(2, 0), (1, 74), (3, 75)])
def test_s_read_12_leader_epoch_fencing(epoch, code):
    asked = Asked(leader_epoch=2)
    asked.append()
    assert only(asked.fetch({0: 0}, current_leader_epoch=epoch)).error_code == code


def test_a_follower_that_diverged_is_told_where_and_has_not_what_it_asks_for():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    asked.append(b"a", b"b")
    (partition,) = asked.partitions
    asked.bench.replicas.make_leader(
        partition.topic_partition, partition.topic_id, led(3, (1, 2)), partition.log.config
    )
    asked.append(b"c")
    assert partition.log.high_watermark == 0
    told = only(asked.fetch({0: 3}, replica=2, last_fetched_epoch=0))
    assert (told.error_code, len(told.records)) == (0, 0)
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (0, 2)
    assert partition.log.high_watermark == 0
    fine = only(asked.fetch({0: 2}, replica=2, last_fetched_epoch=0))
    assert base_offsets(fine) == [2]
    assert partition.log.high_watermark == 2


def test_a_topic_made_anew_is_not_found_by_its_old_id(asked):
    asked.append()
    tp = asked.partitions[0].topic_partition
    asked.bench.image.topics["t"].topic_id = b"n" * 16
    asked.bench.replicas.delete_partition(tp)
    asked.bench.replicas.make_leader(tp, b"n" * 16, led(), TopicConfig(), True)
    assert only(asked.fetch({0: 0}, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


# --------------------------------------------------------------------------- old clients


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_s_read_10_old_clients_get_old_formats(asked, version, magic):
    asked.append(b"a", b"b")
    asked.append(b"c")
    partition = only(asked.fetch({0: 0}, version))
    assert partition.records[16] == magic
    records = records_in(partition.records)
    assert [(r.offset, bytes(r.value)) for r in records] == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert asked.partitions[0].statistics.fetch_message_conversions == 3


def test_s_read_10_zstd_cannot_be_converted(asked):
    asked.append(b"a" * 100, codec=CompressionType.ZSTD)
    partition = only(asked.fetch({0: 0}, 3))
    assert partition.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert len(partition.records) == 0


@pytest.mark.parametrize(("version", "code"), [(3, 76), (4, 0), (9, 0), (10, 0)])
def test_s_read_10_a_zstd_topic_needs_fetch_v4(version, code):
    asked = Asked(config=TopicConfig(compression_type="zstd"))
    asked.append()
    assert only(asked.fetch({0: 0}, version)).error_code == code


def test_s_read_10_down_conversion_may_be_switched_off():
    asked = Asked(config=TopicConfig(message_downconversion_enable=False))
    asked.append()
    assert only(asked.fetch({0: 0}, 3)).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert only(asked.fetch({0: 0}, 4)).error_code == 0


def test_counters(asked):
    asked.append()
    size = len(only(asked.fetch({0: 0})).records)
    asked.fetch({0: 0}, replica=-2)
    statistics = at_once(asked.bench.replicas.statistics()).topics["t"]
    assert statistics.bytes_out == 2 * size
    assert statistics.total_fetch_requests == 2


# --------------------------------------------------------------------------- many partitions


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(fetch, "MANY", 2)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("version", [3, 12, 13])
def test_a_fetch_of_many_partitions_is_answered_in_turns(version):
    asked = Asked(partitions=4)
    for index in range(4):
        asked.append(b"%d" % index, index=index)
    response = asked.fetch(dict.fromkeys(range(4), 0), version)
    assert asked.raw(dict.fromkeys(range(4), 0), version).pauses >= 4
    assert [p.partition_index for p in partitions_of(response)] == [0, 1, 2, 3]
    assert all(len(p.records) for p in partitions_of(response))


@pytest.mark.usefixtures("few_are_many")
def test_a_session_of_many_partitions_is_read_in_turns():
    asked = Asked(partitions=4)
    asked.append(index=1)
    first = asked.fetch(dict.fromkeys(range(4), 0), session=(0, 0), max_wait=0)
    assert len(partitions_of(first)) == 4
    asked.append(index=3)
    begun = asked.raw({1: 1}, session=(first.session_id, 1))
    assert begun.pauses >= 4
    again = asked.done(begun)
    assert [p.partition_index for p in partitions_of(again)] == [3]
    wrong = asked.fetch({}, session=(first.session_id, 7))
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.usefixtures("few_are_many")
def test_a_fetch_of_many_partitions_looks_again_until_its_time_is_over():
    asked = Asked(partitions=4)
    began = asked.bench.clock.monotonic()
    response = asked.fetch(dict.fromkeys(range(4), 0), max_wait=500)
    assert len(partitions_of(response)) == 4
    assert asked.bench.clock.monotonic() - began == pytest.approx(0.5, abs=0.01)
