"""Records are sent, counted and reported, on a producer that is a fake."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from tests.support.client_messages import FakeMessage
from tools.errors import CommandError
from tools.presence import Presence
from tools.produce.delivery import CHUNK, Delivery, send_all
from tools.produce.lines import BadInput, Line
from tools.produce.transactions import send_in_transactions
from tools.records.record import Record


def partition(leader: int = 1, isrs: Sequence[int] = (1,), replicas: int = 1) -> PartitionMetadata:
    found = PartitionMetadata()
    found.leader, found.isrs, found.replicas = leader, list(isrs), [*range(1, replicas + 1)]
    return found


class FakeProducer:
    """Acknowledges at once, silently; refuses values and topics as told; keeps transactions."""

    def __init__(self, refused: bytes | None = None, too_large: bytes | None = None) -> None:
        self.refused, self.too_large = refused, too_large
        self.room = 2
        self.waiting = 0
        self.sent: list[bytes] = []
        self.timestamps: list[int] = []
        self.log: list[str] = []
        self.commit_error: KafkaException | None = None

    def __len__(self) -> int:
        return self.waiting

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        *_rest: Any,
        on_delivery: Any,
        timestamp: int,
        **_: Any,
    ) -> None:
        if not self.room:
            raise BufferError
        self.timestamps.append(timestamp)
        self.room -= 1
        if value == self.too_large:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if value == self.refused:
            refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            on_delivery(refused, FakeMessage(key, value))
        else:
            self.sent.append(value)

    def poll(self, timeout: float) -> None:
        self.room = 2

    def flush(self, timeout: float) -> int:
        return 0

    def list_topics(self, topic: str | None = None, *, timeout: float) -> Any:
        found = TopicMetadata()
        found.partitions = {0: partition(), 1: partition()}
        metadata = ClusterMetadata()
        metadata.topics = {"t": found}
        return metadata

    def init_transactions(self, timeout: float) -> None:
        self.log.append("init")

    def begin_transaction(self) -> None:
        self.log.append("begin")

    def commit_transaction(self, timeout: float) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        self.log.append(f"commit {len(self.sent)}")

    def abort_transaction(self, timeout: float) -> None:
        self.log.append("abort")


def lines(count: int, bad: bool = False, **more: Any) -> Iterable[Line]:
    for number in range(1, count + 1):
        yield Line(Record(topic="t", value=str(number).encode(), **more), "", number, 2)
    if bad:
        raise BadInput(f"line {count + 1} is no JSON")


def send(producer: FakeProducer, given: Iterable[Line]) -> int:
    ticks = count()
    delivery = Delivery(producer, Presence({}), clock=lambda: float(next(ticks)))
    return send_all(delivery, given, lambda _amount: None)


def transact(producer: FakeProducer, given: Iterable[Line], size: int | None = None) -> int:
    delivery = Delivery(producer, Presence({}))
    return send_in_transactions(producer, delivery, given, size, lambda _amount: None)


def said(sending: Any, *args: Any) -> str:
    with pytest.raises(CommandError) as caught:
        sending(*args)
    return str(caught.value)


def test_everything_is_sent_and_counted_even_when_the_queue_is_full() -> None:
    producer = FakeProducer()
    assert send(producer, lines(5)) == 5
    assert len(producer.sent) == 5


def test_a_record_has_its_own_time_or_the_moments() -> None:
    producer = FakeProducer()
    send(producer, [*lines(1), *lines(1, timestamp=1_000)])
    assert producer.timestamps == [0, 1_000]


class StuckProducer(FakeProducer):
    """Has room for one record, and reports its failure while room is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[Any] = []
        self.polls = 0

    def produce(
        self, topic: str, value: bytes, key: bytes | None, *_rest: Any, on_delivery: Any, **_: Any
    ) -> None:
        if self.polls or self.reports:
            raise BufferError
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        self.reports.append(lambda: on_delivery(error, FakeMessage(key, value)))

    def poll(self, timeout: float) -> None:
        self.polls += 1
        assert self.polls < 100, "it would wait for ever"
        if timeout and self.reports:
            self.reports.pop()()


def test_a_failure_is_told_though_the_queue_stays_full() -> None:
    assert said(send, StuckProducer(), lines(3)).startswith("line 1 was not sent: ")


def test_how_many_were_sent_before_a_bad_line() -> None:
    assert said(send, FakeProducer(), lines(3, bad=True)) == (
        "line 4 is no JSON; 3 records were sent"
    )
    assert said(send, FakeProducer(), lines(1, bad=True)) == "line 2 is no JSON; 1 record was sent"


def test_a_record_that_is_refused_is_named_by_its_line() -> None:
    refused = said(send, FakeProducer(refused=b"2"), lines(3))
    assert refused.startswith("line 2 was not sent: ")
    assert refused.endswith("; 1 record was sent")
    assert said(send, FakeProducer(too_large=b"2"), lines(3)).startswith("line 2 was not sent: ")


@pytest.mark.parametrize("refused", [1, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_the_line_is_found_among_those_that_share_a_report(refused: int) -> None:
    told = said(send, FakeProducer(refused=str(refused).encode()), lines(2 * CHUNK))
    assert told.startswith(f"line {refused} was not sent: ")
    assert f"; {refused - 1} record" in told


def test_the_line_is_found_in_its_file_and_by_its_key() -> None:
    def given() -> Iterable[Line]:
        for source in ("a", "b"):
            for number in range(1, 4):
                key = f"{source}{number}".encode()
                yield Line(Record(topic="t", key=key, value=None), source, number, 2)

    class Refusing(FakeProducer):
        def produce(self, topic: str, value: Any, key: Any, *rest: Any, **more: Any) -> None:
            if key == b"b2":
                more["on_delivery"](KafkaError(KafkaError._MSG_TIMED_OUT), FakeMessage(key, None))

    assert said(send, Refusing(), given()).startswith("line 2 of b was not sent: ")


class Waiting(FakeProducer):
    """The records of a topic wait for some time, and are refused or sent then."""

    def __init__(
        self, *, waits: int, times_out: bool = False, error: int | None = None, **parts: Any
    ) -> None:
        super().__init__()
        self.waits, self.times_out = waits, times_out
        self.looks = 0
        self.found = TopicMetadata()
        self.found.error = None if error is None else KafkaError(error)
        self.found.partitions = {0: partition(), 1: partition(**parts)}

    def produce(self, topic: str, value: Any, key: Any, *rest: Any, **more: Any) -> None:
        self.report, self.record = more["on_delivery"], FakeMessage(key, value)
        self.waiting = 1

    def flush(self, timeout: float) -> int:
        self.waits -= 1
        if self.waits <= 0:
            self.waiting = 0
            if self.times_out:
                self.times_out = False
                self.report(KafkaError(KafkaError._MSG_TIMED_OUT), self.record)
        return self.waiting

    def list_topics(self, topic: str | None = None, *, timeout: float) -> Any:
        assert topic == "t"
        self.looks += 1
        metadata = ClusterMetadata()
        metadata.topics = {"t": self.found}
        return metadata


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, None),
        ({"error": KafkaError.INVALID_REPLICATION_FACTOR}, "t: Broker: Invalid replication factor"),
        ({"leader": -1}, "t:1 has no leader"),
        (
            {"isrs": [1], "replicas": 3},
            "t:1 has 1 of 3 replicas in sync (min.insync.replicas)",
        ),
        ({"isrs": [1, 2, 3], "replicas": 3}, None),
    ],
)
def test_the_reason_for_which_records_wait_is_told_once(
    found: dict[str, Any], reason: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = Waiting(waits=40, times_out=True, **found)
    told = said(send, producer, lines(1))
    shown = capsys.readouterr().err
    if reason is None:
        assert told.startswith("line 1 was not sent: Local: Message timed out; 0")
        assert shown == ""
    else:
        assert told.startswith(f"line 1 was not sent: Local: Message timed out ({reason}); 0")
        assert shown == f"waiting: {reason}\n"
        assert producer.looks == 1


def test_records_that_wait_for_a_moment_are_not_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    producer = Waiting(waits=6, leader=-1)
    assert send(producer, lines(1)) == 1
    assert producer.looks == 0


def test_what_waits_for_an_answer_is_not_counted() -> None:
    class Away(FakeProducer):
        def flush(self, timeout: float) -> int:
            raise CommandError("the broker went away")

    producer = Away()
    producer.waiting = 2
    assert said(send, producer, lines(5)) == ("the broker went away; 3 records were acknowledged")


def test_a_partition_that_is_not_there_is_said_before_it_is_tried() -> None:
    assert send(FakeProducer(), lines(1, partition=1)) == 1
    assert "line 1 was not sent: t has no partition 2, its last one is 1" in said(
        send, FakeProducer(), lines(1, partition=2)
    )


def test_one_transaction_for_all() -> None:
    producer = FakeProducer()
    assert transact(producer, lines(3)) == 3
    assert producer.log == ["init", "begin", "commit 3"]


def test_transactions_of_n() -> None:
    producer = FakeProducer()
    assert transact(producer, lines(5), 2) == 5
    assert producer.log == ["init", "begin", "commit 2", "begin", "commit 4", "begin", "commit 5"]


def test_a_bad_line_aborts_what_is_open_and_keeps_what_was_committed() -> None:
    producer = FakeProducer()
    assert said(transact, producer, lines(3, bad=True)) == (
        "line 4 is no JSON; nothing was committed"
    )
    assert producer.log == ["init", "begin", "abort"]
    assert said(transact, FakeProducer(), lines(5, bad=True), 2) == (
        "line 6 is no JSON; 4 records before it were committed, the rest was not"
    )


def test_a_commit_that_fails_is_said() -> None:
    producer = FakeProducer()
    producer.commit_error = KafkaException(KafkaError(KafkaError._FENCED))
    assert said(transact, producer, lines(1)).startswith("the transaction was not committed: ")
