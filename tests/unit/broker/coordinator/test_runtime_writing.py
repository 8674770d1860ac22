"""The one way to write, with a coordinator that keeps nothing but names and numbers."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from broker.coordinator.runtime.decision import Decision, Write
from broker.coordinator.runtime.in_flight import InFlight
from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.runtime.timers import Timers
from broker.coordinator.runtime.writing import TOMBSTONES_PER_BATCH, CoordinatorHooks
from broker.deadlines import Deadlines
from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader
from protocol.records.errors import CorruptBatch
from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.waits import Signal
from tests.support.manual_clock import ManualClock
from tests.support.memory_partition_log import MemoryPartitionLog

NONE = ErrorCode.NONE
FAILS, TOLD = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE
TP = TopicPartition("__numbers", 0)


@dataclass(frozen=True)
class Number:
    """A record."""

    key: str
    value: int | None = None


@dataclass(frozen=True)
class Alarm:
    """A timer."""

    key: str
    delay_ms: int


Numbers = Decision[Number]


class NumberShard:
    """All that a shard has to have."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.in_flight: InFlight[Number] = InFlight()
        self.numbers: dict[str, int | None] = {}
        self.offsets: list[int] = []
        self.rang: list[str] = []

    def on_timer(self, timer: Alarm, out: Numbers) -> None:
        self.rang.append(timer.key)
        out.write([Number("alarm", timer.delay_ms)])

    def replay(self, record: Number, offset: int) -> None:
        assert record in self.in_flight.of(record.key), "a shard knows its own record"
        self.numbers[record.key] = record.value
        self.offsets.append(offset)

    def load_record(self, header: BatchHeader, record: Record) -> None:
        pass

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        pass

    def settle(self) -> Iterator[None]:
        return iter(())


class Numbering:
    """The coordinator, with a diary of what it saw."""

    def __init__(self) -> None:
        self.log = MemoryPartitionLog()
        self.clock = ManualClock()
        self.deadlines = Deadlines(self.clock)
        self.diary: list[object] = []
        self.runtime: CoordinatorRuntime[NumberShard, Numbers] = CoordinatorRuntime(
            TP.topic,
            self.log,
            self.clock,
            Timers(self.deadlines, self.clock),
            CoordinatorHooks(
                new_shard=NumberShard,
                on_active=lambda shard: None,
                on_closed=lambda shard, code: None,
                new_decision=Decision,
                encode=lambda record: (
                    record.key.encode(),
                    None if record.value is None else b"%d" % record.value,
                ),
                on_settled=self._on_settled,
            ),
            partition_count=1,
            slice_bytes=1_000,
        )
        self.shard = self.runtime.shard(0)

    def _on_settled(self, shard: NumberShard, write: Write[Number], code: ErrorCode) -> None:
        self.diary.append(("settled", code))

    def note(self, what: str) -> Signal[Any]:
        """A request whose answer is noted."""
        request: Signal[Any] = Signal()

        async def wait() -> None:
            self.diary.append((what, await request))

        begin(wait())
        return request

    def carry_out(self, out: Numbers) -> None:
        if out.writing is not None:
            begin(self._note_end(out.writing))
        self.runtime.carry_out(self.shard, out)
        self.shard.in_flight._check()

    def write(self, *records: Number) -> None:
        """Carry out a decision that is no more than these records."""
        out: Numbers = Decision()
        out.write(list(records))
        self.carry_out(out)

    async def _note_end(self, write: Write[Number]) -> None:
        self.diary.append(("durable", await write.ended))


@pytest.fixture
def numbering() -> Numbering:
    return Numbering()


def test_a_batch_that_fails_as_soon_as_it_is_appended_is_not_replayed(numbering: Numbering) -> None:
    numbering.log.end_with = FAILS
    out = Numbers()
    out.write([Number("a", 1)])
    numbering.carry_out(out)
    assert numbering.diary == [("durable", TOLD), ("settled", FAILS)]
    assert numbering.shard.numbers == {}


@pytest.mark.parametrize(("code", "told"), [(NONE, NONE), (FAILS, TOLD)])
def test_answers_come_at_once_and_what_depends_on_the_write_in_its_order(
    numbering: Numbering, code: ErrorCode, told: ErrorCode
) -> None:
    def then(code: ErrorCode, following: Numbers) -> None:
        numbering.diary.append(("then", code, numbering.shard.numbers.get("a")))
        following.answer(numbering.note("following"), 3)

    numbering.log.hold = True
    out: Numbers = Decision()
    out.answer(numbering.note("now"), 1)
    out.answer(None, 2)
    out.write([Number("a", 5)], then)
    numbering.carry_out(out)
    assert numbering.diary == [("now", 1)]
    assert numbering.shard.numbers == {}
    assert "a" in numbering.shard.in_flight
    numbering.log.release(code)
    assert not numbering.shard.in_flight
    assert numbering.diary[1:] == [
        ("then", told, 5 if code is NONE else None),
        ("durable", told),
        ("following", 3),
        ("settled", code),
    ]


def test_a_second_answer_to_one_request_is_a_bug(numbering: Numbering) -> None:
    request = numbering.note("once")
    for reply in range(2):
        out: Numbers = Decision()
        out.answer(request, reply)
        with nullcontext() if reply == 0 else pytest.raises(AssertionError):
            numbering.carry_out(out)
    assert numbering.diary == [("once", 0)]


def test_what_is_said_twice_in_one_decision_is_one_batch(numbering: Numbering) -> None:
    out: Numbers = Decision()
    out.write([Number("a", 1)])
    out.write([Number("b", 2)])
    assert out.record_count == 2
    numbering.carry_out(out)
    assert numbering.shard.numbers == {"a": 1, "b": 2}
    assert numbering.shard.offsets == [0, 1]
    assert len(numbering.log.batches[TP]) == 1
    assert numbering.diary == [("durable", NONE), ("settled", NONE)]


def test_a_caller_that_waits_for_no_write_gets_its_answer_at_once(numbering: Numbering) -> None:
    for _ in range(2):
        assert numbering.runtime.carry_out(numbering.shard, Decision()).value is NONE
    assert numbering.diary == []


def test_an_error_may_be_told_in_the_words_of_the_request(numbering: Numbering) -> None:
    numbering.log.fail_with = ErrorCode.MESSAGE_TOO_LARGE
    out: Numbers = Decision()
    write = out.write([Number("a", 1)])
    write.translate = lambda code: ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    numbering.carry_out(out)
    assert numbering.diary[0] == ("durable", ErrorCode.INVALID_COMMIT_OFFSET_SIZE)


def test_a_batch_that_the_log_finds_damaged_is_a_bug_and_does_not_stay_in_flight(
    numbering: Numbering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(tp: TopicPartition, batch: bytes) -> None:
        raise CorruptBatch("damaged")

    monkeypatch.setattr(numbering.log, "append", append)
    with pytest.raises(CorruptBatch):
        numbering.write(Number("a", 1))
    assert not numbering.shard.in_flight
    assert numbering.diary[0] == ("durable", ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("failing", [0, 1, 2, None])
def test_tombstones_go_in_batches_and_the_first_failure_is_told(
    numbering: Numbering, failing: int | None
) -> None:
    records = [Number(f"{index}") for index in range(2 * TOMBSTONES_PER_BATCH + 1)]
    numbering.log.hold = True
    out: Numbers = Decision()
    out.write(records).splits = True
    numbering.carry_out(out)
    assert len(numbering.log.batches[TP]) == 3
    assert len(numbering.shard.in_flight) == len(records)
    for batch in range(3):
        assert numbering.diary == []
        numbering.log.release_one(FAILS if batch == failing else NONE)
    assert numbering.diary[0] == ("durable", NONE if failing is None else TOLD)
    sizes = [TOMBSTONES_PER_BATCH, TOMBSTONES_PER_BATCH, 1]
    durable = sum(size for batch, size in enumerate(sizes) if batch != failing)
    assert len(numbering.shard.numbers) == durable
    assert not numbering.shard.in_flight


def test_records_that_belong_together_are_never_split(numbering: Numbering) -> None:
    numbering.write(*[Number(f"{index}", 1) for index in range(TOMBSTONES_PER_BATCH + 1)])
    assert len(numbering.log.batches[TP]) == 1


@pytest.mark.parametrize("code", [NONE, FAILS])
def test_a_shard_that_was_given_away_is_not_changed(numbering: Numbering, code: ErrorCode) -> None:
    numbering.log.hold = True
    numbering.write(Number("a", 1))
    numbering.runtime.resign(0)
    numbering.log.release(code)
    assert numbering.shard.numbers == {}
    assert not numbering.shard.in_flight
    told = ErrorCode.NOT_COORDINATOR if code is NONE else TOLD
    assert numbering.diary[0] == ("durable", told)


def test_a_timer_is_a_decision_of_the_shard(numbering: Numbering) -> None:
    out: Numbers = Decision()
    out.schedule(Alarm("wake", 50))
    out.schedule(Alarm("never", 50))
    numbering.carry_out(out)
    out = Decision()
    out.cancel("never")
    numbering.carry_out(out)
    numbering.clock.advance(ms=60)
    numbering.deadlines.run_due()
    assert numbering.shard.rang == ["wake"]
    assert numbering.shard.numbers == {"alarm": 50}


def test_a_timer_of_a_shard_that_was_given_away_is_over(numbering: Numbering) -> None:
    out: Numbers = Decision()
    out.schedule(Alarm("wake", 50))
    numbering.carry_out(out)
    numbering.runtime.resign(0)
    numbering.log.led = {}
    numbering.clock.advance(ms=60)
    numbering.deadlines.run_due()
    assert numbering.shard.rang == []
    with pytest.raises(KafkaError):
        numbering.runtime.shard(0)
