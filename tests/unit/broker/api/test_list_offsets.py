"""ListOffsets: special timestamps, times, fencing, and the old list of segment offsets."""

from dataclasses import replace

import pytest

from broker.api.list_offsets import ListOffsetsHandler
from broker.world.workers import WorkerDied
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from storage.errors import StorageError
from storage.log.looking import look_here
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.broker_bench import NOW, Bench, batch, context, led


class Asked:
    def __init__(self, **topic):
        self.bench = Bench()
        self.partitions = self.bench.topic(**topic)
        self.handler = ListOffsetsHandler(self.bench.replicas, look_here)

    def append(self, *values, timestamp=NOW):
        records = batch(list(values) or [b"v"], timestamp=timestamp)
        self.partitions[0].append_as_leader_nowait(records)

    def all(self, timestamp, version=7, *, indexes=(0,), topic="t", epoch=-1, **fields):
        limit = fields.pop("limit", 1)
        message = ListOffsetsRequest(
            **{"replica_id": -1, **fields},
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            timestamp=timestamp,
                            current_leader_epoch=epoch,
                            max_num_offsets=limit,
                        )
                        for index in indexes
                    ],
                )
            ],
        )
        codec = ListOffsetsRequest.codec(version)
        self.message = codec.parse(codec.build(message))
        codec = ListOffsetsResponse.codec(version)
        response = codec.parse(codec.build(at_once(self.handler(context(version), self.message))))
        return response.topics[0].partitions

    def one(self, *args, **kwargs):
        (reply,) = self.all(*args, **kwargs)
        return reply

    def found(self, *args, **kwargs):
        reply = self.one(*args, **kwargs)
        return reply.error_code, reply.timestamp, reply.offset


@pytest.fixture
def asked():
    return Asked()


@pytest.mark.parametrize("version", range(1, 12))
def test_s_ts_1_latest_and_earliest_in_every_version(version):
    asked = Asked(leader_epoch=2)
    asked.append(b"a", b"b", b"c")
    asked.partitions[0].delete_records(1)
    assert asked.found(-1, version) == (0, -1, 3)
    assert asked.found(-2, version) == (0, -1, 1)
    assert asked.one(-1, version).leader_epoch == (2 if version >= 4 else -1)


def test_s_ts_1_latest_is_the_last_stable_offset_for_read_committed(asked):
    asked.append(b"a", b"b")
    asked.partitions[0].log.first_unstable = 1
    assert asked.found(-1, isolation_level=1) == (0, -1, 1)
    assert asked.found(-1, isolation_level=0) == (0, -1, 2)


def test_s_ts_1_a_replica_sees_the_log_end():
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    asked.append(b"a")
    assert asked.found(-1) == (0, -1, 0)
    assert asked.found(-1, replica_id=2) == (0, -1, 1)


def a_follower():
    asked = Asked(replicas=(1, 2), isr=(1, 2), leader_epoch=3)
    asked.append(b"a", timestamp=300)
    asked.append(b"b", timestamp=900)
    asked.append(b"c", timestamp=600)
    asked.partitions[0].delete_records(0)
    follow(asked)
    return asked


def follow(asked):
    partition = asked.partitions[0]
    partition.follow(replace(partition.state.image, leader=2, leader_epoch=7))


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (0, -1, 3)),
        (-2, (0, -1, 0)),
        (-3, (0, 900, 1)),
        (-4, (0, -1, 0)),
        (-5, (0, -1, -1)),
        (301, (0, 900, 1)),
        (901, (0, -1, -1)),
    ],
)
def test_s_ts_1_a_follower_answers_one_that_looks(timestamp, found):
    asked = a_follower()
    assert asked.found(timestamp, 9, replica_id=-2) == found
    for replica_id in (-1, 2, -3):
        refused = asked.one(timestamp, 9, replica_id=replica_id)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_answers_in_version_0_too():
    asked = a_follower()
    refused = asked.one(-1, 0, replica_id=-1, limit=9)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list(asked.one(-2, 0, replica_id=-2, limit=1).old_style_offsets) == [0]


def test_a_follower_knows_the_epochs_of_its_log_and_of_its_leader():
    asked = a_follower()
    assert asked.one(-1, replica_id=-2).leader_epoch == 7
    assert asked.one(-2, replica_id=-2).leader_epoch == 3
    empty = Asked(replicas=(1, 2), isr=(1, 2), leader_epoch=3)
    follow(empty)
    assert empty.one(-2, replica_id=-2).leader_epoch == -1


@pytest.mark.parametrize(("epoch", "code"), [(7, 0), (-1, 0), (6, 74), (8, 75)])
def test_s_read_12_a_follower_checks_the_known_leader_epoch(epoch, code):
    asked = a_follower()
    assert asked.one(-2, replica_id=-2, epoch=epoch).error_code == code
    assert asked.one(-2, replica_id=-1, epoch=epoch).error_code == (code or 6)


def test_an_offline_replica_answers_nobody():
    asked = a_follower()
    asked.partitions[0].close(ErrorCode.KAFKA_STORAGE_ERROR)
    for replica_id in (-1, -2):
        refused = asked.one(-1, replica_id=replica_id)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_named_twice_is_an_invalid_request_on_a_follower_too():
    told = a_follower().all(-1, indexes=(0, 0), replica_id=-2)
    assert [r.error_code for r in told] == [42, 42]


def test_s_ts_1_the_greatest_timestamp(asked):
    assert asked.found(-3) == (0, -1, -1)
    asked.append(timestamp=900)
    asked.append(timestamp=300)
    assert asked.found(-3) == (0, 900, 0)


def test_s_ts_1_tiered_offsets_without_tiers(asked):
    asked.append()
    assert asked.found(-4, 8) == (0, -1, 0)
    assert asked.found(-5, 9) == (0, -1, -1)
    assert asked.found(-6, 11) == (0, -1, -1)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
def test_special_timestamps_need_their_version(asked, timestamp, since):
    asked.append()
    for version in (1, since - 1, since):
        if version <= 11:
            refused = asked.one(timestamp, version).error_code == ErrorCode.UNSUPPORTED_VERSION
            assert refused is (version < since)


def test_s_ts_2_a_time_finds_the_first_record_not_older(asked):
    for timestamp in (100, 300, 200):
        asked.append(timestamp=timestamp)
    assert asked.found(100) == (0, 100, 0)
    assert asked.found(101) == (0, 300, 1)
    assert asked.found(301) == (0, -1, -1)
    asked.partitions[0].log.first_unstable = 1
    assert asked.found(101, isolation_level=1) == (0, -1, -1)


def test_errors_per_partition():
    asked = Asked(partitions=2, leader_epoch=3)
    told = asked.all(-1, indexes=(0, 9, 1))
    assert [(r.partition_index, r.error_code) for r in told] == [(0, 0), (9, 3), (1, 0)]
    assert (told[1].offset, told[1].timestamp, told[1].leader_epoch) == (-1, -1, -1)
    assert asked.one(-1, topic="x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("epoch", "code"), [(3, 0), (-1, 0), (2, 74), (4, 75)])
def test_s_read_12_the_known_leader_epoch_is_checked(epoch, code):
    assert Asked(leader_epoch=3).one(-1, epoch=epoch).error_code == code


def test_a_partition_named_twice_is_an_invalid_request():
    asked = Asked(partitions=2)
    told = asked.all(-1, indexes=(0, 1, 0))
    assert [r.error_code for r in told] == [42, 0, 42]


@pytest.mark.parametrize(("version", "code"), [(4, 5), (5, 78)])
def test_offset_not_available_for_those_who_know_it(version, code):
    asked = Asked(replicas=(1, 2), isr=(1, 2))
    asked.append()
    asked.partitions[0].lead(led(1, (1, 2), (1, 2)))
    assert asked.one(-1, version).error_code == code


def test_a_failing_disk_is_reported(asked):
    async def broken(*_):
        raise StorageError("/data", "EIO")

    asked.partitions[0].log.times.search = broken
    assert asked.one(5).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert asked.bench.logs.failed == ["/data"]


def test_s_ts_5_v0_lists_segment_offsets_newest_first(asked):
    asked.append(b"a", b"b")
    assert list(asked.one(-1, 0, limit=9).old_style_offsets) == [2, 0]
    assert list(asked.one(123, 0, limit=1).old_style_offsets) == [2]
    assert list(asked.one(123, 0, limit=-4).old_style_offsets) == []
    assert asked.partitions[0].log.asked_before == [(-1, 9), (123, 1), (123, 0)]
    assert asked.one(-1, 0, indexes=(7,)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_others_may_run_between_many_partitions():
    bench = Bench()
    bench.topic(partitions=2000)
    partitions = [ListOffsetsPartition(partition_index=at, timestamp=-1) for at in range(2000)]
    asked = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]
    )
    begun = begin(ListOffsetsHandler(bench.replicas, look_here)(context(7), asked))
    assert [p.error_code for p in begun.reply.topics[0].partitions] == [0] * 2000
    assert begun.pauses >= 4000


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.LEADER_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
    + [(version, ErrorCode.OFFSET_NOT_AVAILABLE) for version in (5, 11)],
)
def test_a_child_that_cannot_be_had_is_answered_so_that_clients_try_again(asked, version, code):
    async def no_child(*_):
        raise WorkerDied("none can be started")

    async def a_large_batch(timestamp, isolation, look):
        return await look(b"", 7, 0)

    asked.handler = ListOffsetsHandler(asked.bench.replicas, no_child)
    asked.partitions[0].log.times.search = a_large_batch
    assert asked.one(7, version).error_code == code
    assert code.retriable
    assert not asked.partitions[0].unavailable
