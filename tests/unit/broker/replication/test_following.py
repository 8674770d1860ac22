"""A follower and its leader, both over real logs: what it drops, copies, takes over and survives.

The divergences are those of Kafka's `AbstractFetcherThreadTest`, `ReplicaFetcherThreadTest` and
`EpochDrivenReplicationProtocolAcceptanceTest`.
"""

import errno
from dataclasses import replace
from typing import Any

import pytest

from broker.api.delete_records import DeleteRecordsHandler
from broker.peers.peer import PeerError
from broker.replication import copying
from broker.replication.fetching.replica_fetcher import FIRST_REST_S
from broker.replication.throttle import ReplicationThrottles
from config.broker_config import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.records.builder import build_batch
from storage.log.results import StartOffsetReason
from tests.support.broker_bench import context
from tests.support.replication.cluster import SETTINGS, SimPeer, image_of
from tests.support.replication.pair import FOLLOWER, LEADER, TP, History, Pair, write

CASES: dict[str, tuple[History, History]] = {
    "nothing anywhere": ([], []),
    "an empty follower": ([(0, 5)], []),
    "a prefix": ([(0, 5)], [(0, 3)]),
    "the same": ([(0, 5)], [(0, 5)]),
    "it led and has more of the same epoch": ([(0, 3)], [(0, 5)]),
    "a longer tail of an older epoch": ([(0, 3), (2, 4)], [(0, 9)]),
    "an epoch that the leader never saw": ([(0, 3), (2, 4)], [(0, 3), (1, 2)]),
    "a newer epoch than all of the leader's": ([(0, 3)], [(0, 3), (1, 4)]),
    "two epochs that the leader never saw": ([(0, 3), (4, 2)], [(0, 3), (1, 2), (3, 3)]),
    "epochs by turns (KIP-279)": ([(0, 2), (2, 3), (4, 2)], [(0, 2), (1, 2), (3, 5)]),
    "parted early, long after equal": ([(0, 1), (3, 9)], [(0, 4), (2, 6)]),
    "parted at the first record": ([(1, 4)], [(0, 4)]),
    "the leader's last epoch is older": ([(0, 4), (3, 2)], [(0, 4), (3, 1), (4, 4)]),
    "the leader is empty": ([], [(0, 4)]),
}


@pytest.mark.parametrize("case", CASES)
def test_s_read_13_the_follower_becomes_what_the_leader_is(case: str) -> None:
    pair = Pair(*CASES[case])
    pair.begin(7)
    pair.loop.run(3.0)
    pair.check_equal()
    followed = pair.follower.replicas.find((TP.topic, 0))
    assert (
        followed is not None
        and followed.log.high_watermark == pair.log_of(pair.leader).log_end_offset
    )


@pytest.fixture
def pair() -> Pair:
    """Five records, and a follower that has none."""
    return Pair([(0, 5)], [])


def test_bytes_of_a_replica_that_a_reassignment_adds_count_as_such(pair: Pair) -> None:
    pair.begin(1)
    pair.loop.run(3.0)
    ends = [
        broker.replicas.topic_statistics.of(TP.topic) for broker in (pair.leader, pair.follower)
    ]
    copied = ends[0].replication_bytes_out
    assert copied == ends[1].replication_bytes_in > 0
    assert ends[0].reassignment_bytes_out == ends[1].reassignment_bytes_in == 0
    pair.adding = (FOLLOWER,)
    pair.begin(2)
    write(pair.log_of(pair.leader), [(2, 3)])
    pair.loop.run(3.0)
    pair.check_equal()
    added = ends[0].replication_bytes_out - copied
    assert ends[0].reassignment_bytes_out == ends[1].reassignment_bytes_in == added > 0


def test_another_number_of_fetchers_gives_a_partition_another_one(pair: Pair) -> None:
    pair.begin(1)
    for fetchers, number in ((3, 2), (1, 0)):
        pair.follower.fetchers.reconfigure(replace(SETTINGS, fetchers=fetchers))
        pair.loop.run(3.0)
        assert [one.number for one in pair.follower.fetchers.statistics().fetchers] == [number]
    pair.check_equal()


def test_what_is_equal_is_neither_truncated_nor_sent_again() -> None:
    pair = Pair([(0, 3), (2, 4)], [(0, 3), (2, 4)])
    pair.begin(3)
    pair.loop.run(1.0)
    statistics = pair.follower.fetchers.statistics()
    assert statistics.fetchers[0].bytes == 0
    assert statistics.max_lag == 0


def test_a_log_without_epochs_is_cut_to_its_high_watermark() -> None:
    pair = Pair([(0, 5)], [(0, 5)], mark=2)
    pair.log_of(pair.follower).leader_epochs.clear()
    pair.lead(1)
    pair.follow(1)
    pair.loop.run(0.004)
    assert pair.log_of(pair.follower).log_end_offset in (2, 5)
    pair.loop.run(2.0)
    pair.check_equal()
    assert pair.follower.fetchers.statistics().fetchers[0].bytes > 0


def test_s_rep_5_the_leader_has_deleted_what_would_follow() -> None:
    pair = Pair([(0, 9)], [(0, 2)])
    leader = pair.lead(1)
    leader.log.update_high_watermark(9)
    leader.log.maybe_increment_log_start_offset(6, StartOffsetReason.CLIENT_RECORD_DELETION)
    pair.follow(1)
    pair.loop.run(2.0)
    log = pair.log_of(pair.follower)
    assert (log.log_start_offset, log.log_end_offset) == (6, 9)


def test_s_rep_5_a_follower_ahead_of_its_leader_without_a_common_epoch_is_out_of_range() -> None:
    """After an unclean election no epoch is common, so the follower asks for the leader's end."""
    pair = Pair([(5, 2)], [(3, 6)])
    pair.begin(6)
    pair.loop.run(2.0)
    pair.check_equal()


def test_the_log_start_of_the_leader_is_taken_over() -> None:
    pair = Pair([(0, 9)], [(0, 9)])
    pair.begin(1, isr=(LEADER, FOLLOWER))
    pair.loop.run(1.0)
    pair.leader.replicas.partition(TP).delete_records(4)
    pair.loop.run(1.0)
    assert pair.log_of(pair.follower).log_start_offset == 4


def test_a_caught_up_follower_fetches_seldom() -> None:
    pair = Pair([(0, 3)], [(0, 3)])
    pair.begin(1)
    pair.loop.run(1.0)
    for max_wait_ms in (SETTINGS.max_wait_ms, 400):
        pair.follower.fetchers.reconfigure(replace(SETTINGS, max_wait_ms=max_wait_ms))
        before = pair.requests
        pair.loop.run(10.0)
        waits = 10_000 / max_wait_ms
        assert 0.8 * waits <= pair.requests - before <= waits + 2


# ---------------------------------------------------------------------- answers that are refusals


class Scripted:
    """Stands between the follower and its leader, and changes what comes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[ApiKey, Any]] = []
        self.change: Any = lambda key, response: response
        ask = SimPeer.ask
        script = self

        async def changed(peer: SimPeer, key: ApiKey, request: Any, **how: Any) -> Any:
            script.asked.append((key, request))
            return script.change(key, await ask(peer, key, request, **how))

        monkeypatch.setattr(SimPeer, "ask", changed)

    def fetches(self) -> list[Any]:
        return [request for key, request in self.asked if key == ApiKey.FETCH]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return Scripted(monkeypatch)


def refusing(code: ErrorCode, times: int = 1) -> Any:
    left = times

    def change(key: ApiKey, response: Any) -> Any:
        nonlocal left
        if key == ApiKey.FETCH:
            for topic in response.responses:
                for data in topic.partitions:
                    if left:
                        left -= 1
                        data.error_code, data.records = code, b""
        return response

    return change


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_s_rep_5_after_an_error_a_partition_rests_and_is_asked_for_again(
    pair: Pair, script: Scripted, code: ErrorCode
) -> None:
    script.change = refusing(code)
    pair.begin(1)
    unaware = code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH)
    pair.loop.run((FIRST_REST_S if unaware else SETTINGS.backoff_s) * 0.9)
    assert pair.contents(pair.follower) == {}
    pair.loop.run(1.0)
    pair.check_equal()


def test_a_leader_that_stays_unaware_is_asked_less_and_less_often(
    pair: Pair, script: Scripted
) -> None:
    pair.lead(1)
    pair.follow(2)
    pair.loop.run(0.7)
    assert len(script.fetches()) <= 2 * 5  # after 50, 100, 200, 200, 200 ms, and forgotten between
    assert pair.contents(pair.follower) == {}
    pair.lead(2)
    pair.loop.run(0.3)
    pair.check_equal()


def test_s_rep_5_a_fenced_partition_waits_for_the_controller(pair: Pair, script: Scripted) -> None:
    pair.lead(2)
    pair.follow(1)
    pair.loop.run(3.0)
    assert len(script.fetches()) == 1
    assert "fenced" in pair.follower.fetchers.statistics().failed[TP]
    pair.follow(2)
    pair.loop.run(1.0)
    pair.check_equal()
    assert not pair.follower.fetchers.statistics().failed


@pytest.mark.parametrize(
    "code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_lost_session_is_begun_anew_at_once(
    pair: Pair, script: Scripted, code: ErrorCode
) -> None:
    pair.begin(1)
    pair.loop.run(1.0)
    script.asked.clear()
    lost = []

    def lose(key: ApiKey, response: Any) -> Any:
        if not lost:
            lost.append(1)
            response.error_code, response.responses = code, []
        return response

    script.change = lose
    pair.loop.run(2 * SETTINGS.max_wait_ms / 1000)
    first, second, *_ = script.fetches()
    assert (first.session_epoch > 0, second.session_epoch, len(second.topics)) == (True, 0, 1)
    assert second.session_id == (
        0 if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND else first.session_id
    )


def test_damaged_batches_are_not_appended_and_come_again(pair: Pair, script: Scripted) -> None:
    damaged = []

    def damage(key: ApiKey, response: Any) -> Any:
        for topic in response.responses:
            for data in topic.partitions:
                if not damaged and data.records:
                    records = bytearray(data.records)
                    records[-1] ^= 1
                    data.records = records
                    damaged.append(1)
        return response

    script.change = damage
    pair.begin(1)
    pair.loop.run(SETTINGS.backoff_s * 0.9)
    assert damaged and pair.contents(pair.follower) == {}
    pair.loop.run(1.0)
    pair.check_equal()


def test_batches_of_a_later_epoch_than_is_followed_are_left_out(script: Scripted) -> None:
    pair = Pair([(0, 2), (8, 2)], [])
    pair.begin(3)
    pair.loop.run(1.0)
    assert pair.log_of(pair.follower).log_end_offset == 2


def test_a_leader_that_is_not_reached_is_asked_again_over_another_connection(
    pair: Pair, script: Scripted
) -> None:
    pair.cluster.links.isolate(LEADER, [FOLLOWER])
    pair.begin(1)
    pair.loop.run(3 * SETTINGS.timeout_s)
    assert pair.contents(pair.follower) == {}
    pair.cluster.links.heal()
    pair.loop.run(2 * SETTINGS.timeout_s)
    pair.check_equal()


def test_a_refused_connection_is_not_tried_without_pause(pair: Pair, script: Scripted) -> None:
    def refuse(key: ApiKey, response: Any) -> Any:
        raise PeerError("refused")

    script.change = refuse
    pair.begin(1)
    pair.loop.run(10 * SETTINGS.backoff_s)
    assert len(script.asked) <= 11


# ---------------------------------------------------------------------- roles and disks


def test_a_follower_becomes_leader_and_the_other_way_round(pair: Pair) -> None:
    pair.begin(1, isr=(LEADER, FOLLOWER))
    pair.loop.run(1.0)
    config = pair.cluster.topic_config
    image = pair.image(2, leader=FOLLOWER, isr=(LEADER, FOLLOWER))
    led = pair.follower.replicas.make_leader(TP, b"t" * 16, image, config)
    pair.leader.replicas.make_follower(TP, b"t" * 16, image, config)
    assert led.unavailable == ErrorCode.NONE
    assert led.epoch_start_offset == 5
    led.append_as_leader_nowait(memoryview(bytearray(build_batch([(1, b"k", b"new", ())]))))
    assert led.log.high_watermark == 5, "the new leader knows nothing of its follower yet"
    pair.loop.run(1.0)
    pair.check_equal()
    assert led.log.high_watermark == 6
    assert not pair.follower.fetchers.statistics().fetchers


def test_a_leader_that_wrote_nothing_follows_without_a_loop() -> None:
    """Its epoch, noted at the log's end, is that of no record; the next leader never saw it."""
    pair = Pair([(0, 5)], [(0, 5)])
    pair.begin(3, isr=(LEADER, FOLLOWER))
    pair.loop.run(1.0)
    assert pair.log_of(pair.leader).leader_epochs.latest_epoch == 3
    config = pair.cluster.topic_config
    image = pair.image(5, leader=FOLLOWER, isr=(LEADER, FOLLOWER))
    pair.log_of(pair.follower).leader_epochs.truncate_from_end(5)
    pair.follower.replicas.make_leader(TP, b"t" * 16, image, config)
    pair.leader.replicas.make_follower(TP, b"t" * 16, image, config)
    pair.loop.run(1.0)
    (fetcher,) = pair.leader.fetchers.statistics().fetchers
    assert fetcher.requests < 10
    assert pair.log_of(pair.leader).leader_epochs.latest_epoch == 0


def test_a_partition_that_is_stopped_or_deleted_is_not_fetched_any_more(pair: Pair) -> None:
    pair.begin(1)
    pair.loop.run(1.0)
    pair.follower.replicas.stop_replica(TP, delete=False)
    pair.loop.run(1.0)
    assert pair.follower.fetchers.statistics().fetchers == ()
    assert pair.log_of(pair.follower).log_end_offset == 5
    pair.follow(1)
    pair.follower.replicas.stop_replica(TP, delete=True)
    pair.loop.run(1.0)
    assert pair.follower.logs.get_log(TP) is None
    pair.follower.replicas.stop_replica(TP, delete=True)


def test_s_rec_11_a_failed_disk_ends_the_copying(pair: Pair) -> None:
    pair.follower.disk.fail("pwrite", "*.log", errno=errno.EIO)
    pair.begin(1)
    pair.loop.run(3.0)
    partition = pair.follower.replicas.find((TP.topic, 0))
    assert partition is not None
    assert partition.unavailable == ErrorCode.KAFKA_STORAGE_ERROR
    assert pair.follower.fetchers.statistics().fetchers == ()


def test_without_descriptors_the_copying_rests_and_goes_on(pair: Pair) -> None:
    pair.follower.disk.fail("pwrite", "*.log", errno=errno.EMFILE)
    pair.begin(1)
    pair.loop.run(3.0)
    pair.check_equal()


def test_an_old_state_of_the_controller_changes_nothing(pair: Pair) -> None:
    pair.begin(5)
    pair.loop.run(1.0)
    known = pair.follower.replicas.find((TP.topic, 0))
    assert known is not None
    state = known.state
    pair.follow(5)
    assert known.state == state
    pair.loop.run(1.0)
    assert len(pair.follower.fetchers.statistics().fetchers) == 1


def test_big_answers_are_appended_by_threads_in_their_order() -> None:
    pair = Pair([], [])
    leader = pair.lead(1)
    for number in range(5):
        value = b"%d" % number + b"x" * 400_000
        leader.log.append_as_leader(bytearray(build_batch([(1, b"k", value, ())])), leader_epoch=1)
    pair.follow(1)
    pair.loop.run(2.0)
    pair.check_equal()


def test_the_next_leader_waits_for_a_copy_that_a_thread_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The epoch of a leader begins behind what its follower's thread was writing."""
    pair = Pair([], [])
    leader = pair.lead(1)
    value = b"x" * 600_000
    leader.log.append_as_leader(bytearray(build_batch([(1, b"k", value, ())])), leader_epoch=1)
    follower = pair.follow(1)
    begin, begun = copying._begin, []

    def noted(*given: Any) -> Any:
        begun.append(1)
        return begin(*given)

    monkeypatch.setattr(copying, "_begin", noted)
    for _ in range(100_000):
        if begun:
            break
        pair.loop.run(1e-5)
    assert begun and follower.appending, "a thread writes"
    image = pair.image(2, leader=FOLLOWER, isr=(LEADER, FOLLOWER))
    pair.follower.known = image_of({0: pair.image(1, isr=(LEADER,))})
    pair.follower.start(pair.follower.take(image_of({0: image}), (LEADER, FOLLOWER)))
    pair.loop.run(1.0)
    assert follower.unavailable == ErrorCode.NONE
    assert follower.appending == 0
    assert follower.log.log_end_offset == follower.epoch_start_offset == 1
    follower.log._check()


# ---------------------------------------------------------------------- throttles


def throttled(pair: Pair, side: str, rate: int, replicas: str) -> None:
    """Throttle one side's broker, as `kafka-reassign-partitions --throttle` does."""
    broker = pair.leader if side == "leader" else pair.follower
    config = BrokerConfig.parse({"log.dirs": "/d", f"{side}.replication.throttled.rate": str(rate)})
    throttles = ReplicationThrottles(lambda: config, pair.loop.monotonic)
    broker.replicas.throttles = throttles
    object.__setattr__(broker.fetchers._around, "throttle", throttles.follower)
    pair.cluster.topic_config = replace(
        pair.cluster.topic_config,
        **{f"{side}_replication_throttled_replicas": tuple(replicas.split(","))},
    )
    pair.log_of(broker).update_config(pair.cluster.topic_config)


@pytest.mark.parametrize(("side", "broker"), [("leader", LEADER), ("follower", FOLLOWER)])
def test_s_read_8_a_throttled_replica_is_copied_at_its_rate(side: str, broker: int) -> None:
    pair = Pair([], [])
    batch = bytearray(build_batch([(1, b"k", b"x" * 10_000, ())]))
    leader = pair.lead(1)
    for _ in range(120):
        leader.log.append_as_leader(bytearray(batch), leader_epoch=1)
    leader.maybe_increment_high_watermark()
    throttled(pair, side, 200_000, f"7:9,0:{broker}")
    pair.cluster.brokers[FOLLOWER].fetchers.reconfigure(
        replace(SETTINGS, partition_max_bytes=50_000, backoff_s=0.05)
    )
    pair.follow(1)
    pair.loop.run(3.0)
    copied = pair.log_of(pair.follower).size
    assert 300_000 <= copied <= 900_000
    pair.loop.run(8.0)
    pair.check_equal()


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_s_read_8_other_partitions_and_replicas_in_sync_are_not_throttled(side: str) -> None:
    pair = Pair([(0, 50)], [])
    throttled(pair, side, 1, "1:1,1:2")
    pair.begin(1)
    pair.loop.run(1.0)
    pair.check_equal()
    throttled(pair, side, 1, "*")
    pair.begin(2, isr=(LEADER, FOLLOWER))
    partition = pair.leader.replicas.partition(TP)
    for _ in range(5):
        batch = memoryview(bytearray(build_batch([(1, b"k", b"x" * 1000, ())])))
        partition.append_as_leader_nowait(batch)
        pair.leader.replicas.wake(partition)
        pair.loop.run(1.0)
        if side == "leader":
            pair.check_equal()


# ---------------------------------------------------------------------- deleted records


def deleted(pair: Pair, offset: int, timeout_ms: int) -> list[Any]:
    """Begin a DeleteRecords; return the list that its answers come to."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        timeout_ms=timeout_ms, topics=[DeleteRecordsTopic(name=TP.topic, partitions=[partition])]
    )
    answers: list[Any] = []
    handler = DeleteRecordsHandler(pair.leader.replicas)
    work = handler(context(2, api_key=ApiKey.DELETE_RECORDS), request)
    pair.leader.start(work, answers.append)
    return answers


def test_s_ret_6_deleting_records_waits_for_the_followers_log_starts() -> None:
    pair = Pair([(0, 9)], [(0, 9)])
    pair.begin(1, isr=(LEADER, FOLLOWER))
    pair.loop.run(1.0)
    answers = deleted(pair, 4, 5000)
    pair.loop.run(0.01)
    assert answers == []
    pair.loop.run(2.0)
    (found,) = answers[0].topics[0].partitions
    assert (found.error_code, found.low_watermark) == (0, 4)
    assert pair.log_of(pair.follower).log_start_offset == 4


def test_s_ret_6_a_follower_that_is_not_heard_of_is_waited_for_until_the_timeout() -> None:
    pair = Pair([(0, 9)], [(0, 9)])
    pair.begin(1, isr=(LEADER, FOLLOWER))
    pair.loop.run(1.0)
    pair.cluster.links.isolate(LEADER, [FOLLOWER])
    answers = deleted(pair, 4, 500)
    pair.loop.run(1.0)
    (found,) = answers[0].topics[0].partitions
    assert (found.error_code, found.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    pair.leader.image.remove_broker(FOLLOWER)
    answers = deleted(pair, 5, 500)
    pair.loop.run(0.01)
    (found,) = answers[0].topics[0].partitions
    assert (found.error_code, found.low_watermark) == (0, 5), "one that does not live is not"
