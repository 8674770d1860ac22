"""Compaction end to end, in virtual time: its effect on clients, and its failures."""

import errno
from types import ModuleType

import pytest

from broker.cleaner import log_cleaner
from broker.cleaner.cleaning_steps import Cleaned
from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.world.workers import WorkerDied
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.cleaner import work as work_in_child
from storage.cleaner.errors import UncleanableLog, UncleanableReason
from storage.cleaner.planner import NotDue, NothingDirty, OpenTransaction
from storage.cleaner.states import LogCleaningPaused
from tests.anomalies.workload.raw import RawProducer
from tests.simulation.readers import GroupOffsets
from tests.support.broker_configs import altered, altered_topic, refused
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker
from tests.whole.committed import committed_values
from tests.whole.compacting import left, log_of, overwritten, put
from tests.whole.plain import make_coordinators

COMPACTED = {"cleanup__policy": "compact", "segment__bytes": "1000"}


def latest(records: list[tuple[int, str, str | None]]) -> dict[str, str | None]:
    return {key: value for _, key, value in records}


async def dirty(broker: WholeBroker, topic: str = "t", **configs: str) -> None:
    """Make a compacted topic with ninety records of three keys."""
    await broker.create_topic(topic, **{**COMPACTED, **configs})
    await overwritten(broker.client(), f"{topic}-0", 30)


async def size(broker: WholeBroker, topic: str = "t") -> int:
    """Return the number of records that are left of a topic."""
    return len(await left(broker.client(), f"{topic}-0"))


async def begin_anew(broker: WholeBroker, end: str) -> None:
    """End the broker in this way and start it."""
    if end == "restart":
        await broker.restart()
    else:
        getattr(broker, end)()
        await broker.start()


def files(broker: WholeBroker, suffix: str) -> list[str]:
    return [name for name in broker.disk.list_dir(f"{LOG_DIR}/t-0") if name.endswith(suffix)]


@whole_broker()
async def test_the_latest_value_of_each_key_stays_at_its_offset(broker: WholeBroker) -> None:
    await dirty(broker)
    client = broker.client()
    before = await left(client, "t-0")
    await broker.clock.sleep(40)
    after = await left(client, "t-0")
    log = log_of(broker)
    active = log.segments.active.base_offset
    assert len(before) == 90
    assert set(after) < set(before)
    assert latest(after) == latest(before)
    # The active segment is unchanged, and below it each key is left once.
    assert [one for one in after if one[0] >= active] == [one for one in before if one[0] >= active]
    below = [key for offset, key, _ in after if offset < active]
    assert sorted(below) == sorted(set(below)) == ["k0", "k1", "k2"]
    assert log.log_end_offset == 90
    assert await put(client, "t-0", k0="next") == 90
    assert files(broker, ".cleaned") == files(broker, ".swap") == []
    await broker.clock.sleep(90)
    assert files(broker, ".deleted") == []
    assert broker.disk.read_bytes(f"{LOG_DIR}/cleaner-offset-checkpoint") == (
        f"0\n1\nt 0 {active}\n".encode()
    )


@pytest.mark.parametrize("end", ["restart", "kill", "lose_power"])
@whole_broker()
async def test_a_cleaned_log_is_clean_after_a_start(broker: WholeBroker, end: str) -> None:
    await dirty(broker, flush__messages="1")
    await broker.clock.sleep(40)
    cleaned = await left(broker.client(), "t-0")
    await begin_anew(broker, end)
    assert await left(broker.client(), "t-0") == cleaned
    verdict = broker.server.log_manager.cleaner.verdict_of(log_of(broker))
    assert isinstance(verdict, NotDue)
    assert await broker.stop()
    assert files(broker, ".cleaned") == []


@whole_broker()
async def test_a_tombstone_stays_for_delete_retention_ms_and_goes(broker: WholeBroker) -> None:
    await broker.create_topic(
        "t", delete__retention__ms="3600000", min__cleanable__dirty__ratio="0.01", **COMPACTED
    )
    client = broker.client()
    await put(client, "t-0", gone="x", stays="y")
    await put(client, "t-0", gone=None)
    await overwritten(client, "t-0", 12)
    await broker.clock.sleep(40)
    assert latest(await left(client, "t-0"))["gone"] is None
    await broker.clock.sleep(3700)
    await overwritten(client, "t-0", 12)
    await broker.clock.sleep(40)
    found = latest(await left(client, "t-0"))
    assert "gone" not in found
    assert found["stays"] == "y"


@whole_broker()
async def test_s_cmp_13_a_topic_may_be_compacted_and_deleted_from(broker: WholeBroker) -> None:
    await dirty(broker, cleanup__policy="compact,delete", retention__ms="60000")
    await broker.clock.sleep(40)
    assert await size(broker) > 0
    await broker.clock.sleep(60)
    log = log_of(broker)
    assert (log.log_start_offset, log.log_end_offset) == (90, 90)
    assert await put(broker.client(), "t-0", k0="next") == 90


@whole_broker()
async def test_s_cmp_13_a_topic_that_is_only_compacted_keeps_old_records(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", retention__ms="60000", **COMPACTED)
    await put(broker.client(), "t-0", once="x")
    await overwritten(broker.client(), "t-0", 30)
    await broker.clock.sleep(400)
    assert latest(await left(broker.client(), "t-0"))["once"] == "x"


@whole_broker(log__cleaner__enable="false")
async def test_s_cmp_13_without_the_cleaner_nothing_is_cleaned_or_deleted(
    broker: WholeBroker,
) -> None:
    await dirty(broker, cleanup__policy="compact,delete", retention__ms="60000")
    await broker.clock.sleep(400)
    assert await size(broker) == 90


@whole_broker()
async def test_s_cmp_13_a_topic_becomes_compacted_and_deleted_from_and_compacted_again(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", segment__bytes="1000")
    client = broker.client()
    await overwritten(client, "t-0", 30)
    await broker.clock.sleep(40)
    assert len(await left(client, "t-0")) == 90
    await altered_topic(broker, "t", cleanup__policy="compact")
    await broker.clock.sleep(40)
    assert len(await left(client, "t-0")) < 20
    await altered_topic(broker, "t", cleanup__policy="delete", retention__ms="1000")
    await broker.clock.sleep(400)
    assert log_of(broker).log_start_offset == 90
    await overwritten(client, "t-0", 30)
    await altered_topic(broker, "t", cleanup__policy="compact")
    await broker.clock.sleep(40)
    found = await left(client, "t-0", 90)
    assert len(found) < 20
    assert latest(found) == dict.fromkeys(("k0", "k1", "k2"), "0029" * 10)


@pytest.mark.parametrize(
    "configs",
    [
        {"min.compaction.lag.ms": "600000"},
        {"min.cleanable.dirty.ratio": "1.0", "max.compaction.lag.ms": "600000"},
    ],
    ids=["the least lag", "the greatest lag, whatever the ratio"],
)
@whole_broker()
async def test_s_cmp_1_and_s_cmp_2_a_log_is_cleaned_when_its_lag_is_over(
    broker: WholeBroker, configs: dict[str, str]
) -> None:
    await dirty(broker, **configs)
    await broker.clock.sleep(500)
    assert await size(broker) == 90
    await broker.clock.sleep(200)
    assert await size(broker) < 20


@whole_broker()
async def test_s_cmp_12_the_throttle_counts_all_bytes_that_are_read_and_written(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    cleaner = broker.server.components.log_cleaner

    async def throttle(observed: float) -> None:
        told.append(observed)

    monkeypatch.setattr(cleaner.throttler, "throttle", throttle)
    await dirty(broker)
    done: list[Cleaned] = []
    monkeypatch.setattr(Cleaned, "tell", lambda cleaned, *_: done.append(cleaned))
    await broker.clock.sleep(40)
    stats = [one.stats for one in done]
    assert stats
    assert sum(told) == sum(
        one.map_bytes_read + one.bytes_read + one.bytes_written for one in stats
    )
    assert all(one.map_bytes_read and one.bytes_read and one.bytes_written for one in stats[:1])


@whole_broker(log__cleaner__threads="3", log__cleaner__backoff__ms="10000")
async def test_compacted_logs_meet_retention_once_per_backoff_whatever_the_threads(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    manager = broker.server.log_manager
    real = manager.apply_retention_to_compacted

    def noting() -> object:
        times.append(broker.clock.monotonic())
        return real()

    monkeypatch.setattr(manager, "apply_retention_to_compacted", noting)
    await broker.clock.sleep(45)
    assert times == [0, 10, 20, 30, 40]


@whole_broker(log__cleaner__io__max__bytes__per__second="70000")
async def test_s_cmp_12_a_throttled_cleaning_sleeps_for_a_second_or_two_at_a_time(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[int] = []
    real = work_in_child.map_some

    def noting(state: dict[str, object], budget: int) -> object:
        budgets.append(budget)
        return real(state, budget)

    monkeypatch.setattr(work_in_child, "map_some", noting)
    await dirty(broker)
    await broker.clock.sleep(20)
    await altered(broker, log__cleaner__io__max__bytes__per__second="1e12")
    await overwritten(broker.client(), "t-0", 30)
    await broker.clock.sleep(40)
    assert set(budgets) == {70_000, 4 << 20}


@whole_broker()
async def test_s_cmp_11_an_unexpected_error_ends_the_cleaning_of_its_partition_only(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(state: object, budget: int) -> object:
        raise LookupError("a cleaner with a bug")

    await dirty(broker)
    with monkeypatch.context() as patched:
        patched.setattr(work_in_child, "map_some", broken)
        await broker.clock.sleep(40)
    manager = broker.server.log_manager
    assert manager.cleaner.why_uncleanable(log_of(broker)) == "LookupError: a cleaner with a bug"
    await dirty(broker, "u")
    await broker.clock.sleep(40)
    assert await size(broker, "u") < 20
    assert await size(broker) == 90
    await broker.restart()
    await broker.clock.sleep(40)
    assert await size(broker) < 20


@pytest.mark.parametrize(
    ("module", "step", "error"),
    [
        (work_in_child, "rewrite_some", WorkerDied("killed")),
        (work_in_child, "rewrite_some", MemoryError()),
        (work_in_child, "rewrite_some", OSError(errno.EMFILE, "none left")),
        (log_cleaner, "_import_steps", OSError(errno.EIO, "site-packages")),
        (log_cleaner, "_import_steps", ImportError("no memory")),
    ],
)
@whole_broker()
async def test_a_cleaning_without_its_child_its_room_or_its_modules_is_tried_again(
    broker: WholeBroker,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    step: str,
    error: Exception,
) -> None:
    def failing(*_: object) -> object:
        raise error

    await dirty(broker)
    with monkeypatch.context() as patched:
        patched.setattr(module, step, failing)
        await broker.clock.sleep(40)
    assert files(broker, ".cleaned") == []
    assert await size(broker) == 90
    await broker.clock.sleep(40)
    assert await size(broker) < 20


@pytest.mark.parametrize(
    "error",
    [
        UncleanableLog(UncleanableReason.CORRUPT_BATCH, "at 7"),
        KafkaError(ErrorCode.CORRUPT_MESSAGE, "at 7"),
    ],
)
@whole_broker()
async def test_s_cmp_11_a_log_that_cannot_be_cleaned_is_given_up_and_counted(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refusing(state: object, budget: int) -> object:
        raise error

    await dirty(broker)
    monkeypatch.setattr(work_in_child, "rewrite_some", refusing)
    await broker.clock.sleep(60)
    statistics = broker.server.components.log_cleaner.statistics()
    assert statistics.manager.uncleanable_partitions == {LOG_DIR: 1}
    log = log_of(broker)
    assert statistics.manager.uncleanable_bytes == {LOG_DIR: log.size - log.segments.active.size}
    assert "at 7" in (broker.server.log_manager.cleaner.why_uncleanable(log) or "")
    assert files(broker, ".cleaned") == []
    assert await size(broker) == 90


@whole_broker(log__dirs="/d,/e")
async def test_a_disk_that_fails_under_a_cleaning_goes_offline_and_the_other_serves(
    broker: WholeBroker,
) -> None:
    for topic in ("t", "u"):
        await dirty(broker, topic)
    broker.disk.fail("fsync", "/d/*.cleaned")
    await broker.clock.sleep(60)
    assert broker.server.log_manager.offline_dirs == ("/d",)
    assert await size(broker, "u") < 20


@whole_broker()
async def test_a_topic_may_be_deleted_while_it_is_cleaned(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dirty(broker)
    manager = broker.server.log_manager
    rewrite = work_in_child.rewrite_some

    def deleted_meanwhile(state: dict[str, object], budget: int) -> object:
        done = rewrite(state, budget)
        monkeypatch.setattr(work_in_child, "rewrite_some", rewrite)
        manager.async_delete(TopicPartition("t", 0))
        return done

    monkeypatch.setattr(work_in_child, "rewrite_some", deleted_meanwhile)
    await broker.clock.sleep(40)
    assert manager.get_log(TopicPartition("t", 0)) is None
    assert manager.cleaner.state_of(TopicPartition("t", 0)) is None
    assert manager.live_dirs == (LOG_DIR,)
    await broker.clock.sleep(90)
    assert [name for name in broker.disk.list_dir(LOG_DIR) if name.startswith("t-0")] == []


@whole_broker()
async def test_a_stop_ends_a_cleaning_at_its_next_step(broker: WholeBroker) -> None:
    await dirty(broker)
    await altered(broker, log__cleaner__io__max__bytes__per__second="1")
    await broker.clock.sleep(20)
    assert broker.server.log_manager.cleaner.statistics(()).in_progress == 1
    began = broker.clock.monotonic()
    assert await broker.stop()
    assert broker.clock.monotonic() - began < 1
    assert files(broker, ".cleaned") == []
    await broker.start()
    assert await size(broker) == 90


@whole_broker(log__cleaner__threads="2")
async def test_threads_and_their_memory_change_while_the_broker_runs(broker: WholeBroker) -> None:
    cleaner = broker.server.components.log_cleaner
    await broker.clock.sleep(1)
    assert cleaner.settings.map_bytes == 134217728 // 2
    assert "at least 1" in await refused(broker, log__cleaner__threads="0")
    assert "more than double the current value 2" in await refused(
        broker, log__cleaner__threads="5"
    )
    await altered(broker, log__cleaner__threads="4", log__cleaner__backoff__ms="100")
    await broker.clock.sleep(1)
    assert cleaner.settings.threads == 4
    assert cleaner.statistics().dead_thread_count == 0
    for number in range(4):
        await dirty(broker, f"t{number}")
    await broker.clock.sleep(8)
    for number in range(4):
        assert await size(broker, f"t{number}") < 20


@whole_broker()
async def test_an_empty_and_a_clean_log_are_left_alone(broker: WholeBroker) -> None:
    await broker.create_topic("t", **COMPACTED)
    await broker.clock.sleep(60)
    verdict = broker.server.log_manager.cleaner.verdict_of(log_of(broker))
    assert isinstance(verdict, NotDue)
    assert verdict.reasons == (NothingDirty(),)
    assert not broker.disk.exists(f"{LOG_DIR}/cleaner-offset-checkpoint")


# ---- transactions, and the coordinators' topics


async def owner(broker: WholeBroker, name: str = "id") -> RawProducer:
    line = broker.client(name)
    return await RawProducer(line, name, transaction_timeout_ms=600_000).open()


async def transaction(producer: RawProducer, *values: str, commit: bool) -> None:
    await producer.begin()
    for value in values:
        await producer.send("t-0", value)
    await producer.flush()
    await (producer.commit() if commit else producer.abort())


@whole_broker()
async def test_aborted_records_go_and_committed_readers_see_the_same(broker: WholeBroker) -> None:
    await broker.create_topic("t", **COMPACTED)
    producer = await owner(broker)
    for number in range(12):
        values = [f"{number:02}-{one:02}" * 5 for one in range(4)]
        await transaction(producer, *values, commit=number % 2 == 0)
    before = await committed_values(broker, "t-0")
    await broker.clock.sleep(40)
    uncommitted = [value for _, _, value in await left(broker.client(), "t-0")]
    active = log_of(broker).segments.active.base_offset
    aborted = {
        value
        for offset, _, value in await left(broker.client(), "t-0")
        if value not in before and offset < active
    }
    assert aborted == set()
    assert set(before) <= set(uncommitted)
    assert await committed_values(broker, "t-0") == before
    # Sequences go on, and so do transactions, also after a start.
    await transaction(producer, "more", commit=True)
    broker.kill()
    await broker.start()
    assert await committed_values(broker, "t-0") == [*before, "more"]


@whole_broker()
async def test_an_open_transaction_holds_the_cleaner_back_and_is_the_reason(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", **COMPACTED)
    client = broker.client()
    await overwritten(client, "t-0", 4)
    producer = await owner(broker)
    await producer.begin()
    await producer.send("t-0", "open")
    await producer.flush()
    await overwritten(client, "t-0", 30)
    first_offset = 12
    await broker.clock.sleep(20)
    verdict = broker.server.log_manager.cleaner.verdict_of(log_of(broker))
    assert isinstance(verdict, NotDue)
    told = OpenTransaction(producer_id=producer.producer_id, first_offset=first_offset)
    assert told in verdict.reasons
    assert len(await left(client, "t-0")) == 103
    await producer.commit()
    await broker.clock.sleep(40)
    assert len(await left(client, "t-0")) < 20


@pytest.mark.parametrize("end", ["restart", "kill"])
@whole_broker(offsets__topic__segment__bytes="2000", transaction__state__log__segment__bytes="2000")
async def test_the_coordinators_topics_stay_small_and_are_read_back(
    broker: WholeBroker, end: str
) -> None:
    await broker.create_topic("t", 2)
    producer = await owner(broker)
    await make_coordinators(broker)
    offsets = GroupOffsets(broker.client("g"), "g", "", None)  # type: ignore[arg-type]
    for number in range(1, 60):
        assert await offsets.commit({"t-0": number, "t-1": 2 * number}) == 0
        await transaction(producer, f"{number}", commit=number % 2 == 0)
    await broker.clock.sleep(40)
    for name in ("__consumer_offsets-0", "__transaction_state-0"):
        assert log_of(broker, name).size < 4000
        assert log_of(broker, name).log_end_offset > 100
    await begin_anew(broker, end)
    offsets = GroupOffsets(broker.client("g"), "g", "", None)  # type: ignore[arg-type]
    assert await offsets.committed(("t-0", "t-1")) == {"t-0": 59, "t-1": 118}
    again = await owner(broker)
    assert (again.producer_id, again.epoch > 0) == (producer.producer_id, True)


@whole_broker(offsets__topic__segment__bytes="2000")
async def test_a_coordinators_partition_is_not_compacted_while_it_is_read_back(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.create_topic("t")
    await make_coordinators(broker)
    offsets = GroupOffsets(broker.client("g"), "g", "", None)  # type: ignore[arg-type]
    for number in range(60):
        assert await offsets.commit({"t-0": number}) == 0
    states: list[object] = []
    read = ReplicaPartitionWriter.read

    async def noting(self: ReplicaPartitionWriter, tp: TopicPartition, *place: int) -> bytes:
        states.append(self._replicas.log_manager.cleaner.state_of(tp))
        return await read(self, tp, *place)

    broker.kill()
    monkeypatch.setattr(ReplicaPartitionWriter, "read", noting)
    await broker.start()
    await broker.clock.sleep(1)
    assert set(states) == {LogCleaningPaused(1)}
    await broker.clock.sleep(40)
    assert log_of(broker, "__consumer_offsets-0").size < 4000


@whole_broker()
async def test_s_cmp_13_delete_records_takes_segments_of_topics_that_allow_it(
    broker: WholeBroker,
) -> None:
    await dirty(broker, "t", cleanup__policy="compact,delete")
    await dirty(broker, "u")
    replicas = broker.server.components.replica_manager
    with pytest.raises(KafkaError, match="can not be deleted due to the configured policy"):
        replicas.partition(TopicPartition("u", 0)).delete_records(50)
    assert replicas.partition(TopicPartition("t", 0)).delete_records(50) == 50
    await broker.clock.sleep(40)
    assert log_of(broker).log_start_offset == 50
    assert 30 < log_of(broker).segments.first.base_offset <= 50
    assert latest(await left(broker.client(), "t-0", 50)).keys() == {"k0", "k1", "k2"}
