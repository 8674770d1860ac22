"""Rows to transactions: what is sent, skipped, sent again, and committed beside."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from pipeline.errors import PipelineError
from pipeline.restore import sending
from pipeline.restore.job import SendJob, TopicLimits
from pipeline.restore.sending import Item, send_all


class Broker:
    """Keeps what producers committed; calls fail with the errors in `failures`."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.positions: dict[tuple[str, int], int] = {}
        self.failures: dict[str, list[KafkaException]] = {}
        self.transactional_ids: list[str] = []
        self.batch_sizes: list[int] = []
        self.refused: dict[bytes, int] = {}
        """Codes of the errors with which records of these values are not delivered."""

    def fail(self, call: str) -> None:
        failures = self.failures.get(call)
        if failures:
            raise failures.pop(0)


class FakeProducer:
    def __init__(self, broker: Broker, settings: dict[str, Any]) -> None:
        self.broker = broker
        self.id = settings["transactional.id"]
        broker.batch_sizes.append(settings["batch.size"])
        self.open: list[dict[str, Any]] = []
        self.offsets: list[TopicPartition] = []

    def init_transactions(self, _timeout: float) -> None:
        self.broker.fail("init")
        self.broker.transactional_ids.append(self.id)

    def begin_transaction(self) -> None:
        assert not self.open and not self.offsets

    def produce(self, topic: str, **record: Any) -> None:
        delivered = record.pop("on_delivery")
        if record["value"] in self.broker.refused:
            delivered(KafkaError(self.broker.refused[record["value"]], "as told"), None)
        self.open.append({"topic": topic, **record})

    def poll(self, _timeout: float) -> None:
        pass

    def send_offsets_to_transaction(
        self, offsets: list[TopicPartition], _group: Any, _timeout: float
    ) -> None:
        self.offsets += offsets

    def commit_transaction(self, _timeout: float) -> None:
        self.broker.fail("commit")
        self.broker.records += self.open
        for place in self.offsets:
            self.broker.positions[(place.topic, place.partition)] = place.offset
        self.open, self.offsets = [], []

    def abort_transaction(self, _timeout: float) -> None:
        self.open, self.offsets = [], []


class FakeConsumer:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def committed(self, places: list[TopicPartition], _timeout: float) -> list[TopicPartition]:
        for place in places:
            place.offset = self.broker.positions.get((place.topic, place.partition), -1001)
        return places

    def consumer_group_metadata(self) -> object:
        return object()

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    broker = Broker()
    monkeypatch.setattr(sending, "Producer", lambda settings: FakeProducer(broker, settings))
    monkeypatch.setattr(sending, "Consumer", lambda _settings: FakeConsumer(broker))
    monkeypatch.setattr(sending, "_PAUSE_S", 0)
    yield broker


def rows(topic: str, partition: int, *positions: int) -> list[Item]:
    return [
        Item(topic, partition, position, 1000 + position, b"k", str(position).encode(), None)
        for position in positions
    ]


def job(**more: Any) -> SendJob:
    return SendJob(name="r", bootstrap="nowhere:1", records_per_transaction=3, **more)


def failure(code: int, *, abort: bool = False, retriable: bool = False) -> KafkaException:
    return KafkaException(
        KafkaError(code, "as told", retriable=retriable, txn_requires_abort=abort)
    )


def test_rows_and_the_next_position_are_committed_together(broker: Broker) -> None:
    (sent,) = send_all(rows("t", 2, 5, 6, 9, 10), job())
    assert [record["value"] for record in broker.records] == [b"5", b"6", b"9", b"10"]
    assert {record["partition"] for record in broker.records} == {2}
    assert [record["timestamp"] for record in broker.records] == [1005, 1006, 1009, 1010]
    assert broker.positions == {("t", 2): 11}
    assert (sent.sent, sent.skipped, sent.next_position) == (4, 0, 11)


def test_each_partition_has_a_transactional_id_of_its_own_that_stays(broker: Broker) -> None:
    for _attempt in range(2):
        list(send_all([*rows("t", 0, 1), *rows("t", 1, 1)], job()))
    assert broker.transactional_ids == ["r-t-0", "r-t-1"] * 2


def test_what_is_there_is_skipped(broker: Broker) -> None:
    list(send_all(rows("t", 0, 1, 2, 3), job()))
    (sent,) = send_all(rows("t", 0, 1, 2, 3, 4), job())
    assert [record["value"] for record in broker.records] == [b"1", b"2", b"3", b"4"]
    assert (sent.sent, sent.skipped) == (1, 3)


def test_an_aborted_transaction_is_sent_again_whole(broker: Broker) -> None:
    broker.failures["commit"] = [failure(KafkaError._TIMED_OUT, abort=True)] * 2
    list(send_all(rows("t", 0, 1, 2, 3, 4), job()))
    assert [record["value"] for record in broker.records] == [b"1", b"2", b"3", b"4"]


def test_a_commit_whose_answer_is_late_is_asked_for_again(broker: Broker) -> None:
    broker.failures["commit"] = [failure(KafkaError._TIMED_OUT, retriable=True)]
    list(send_all(rows("t", 0, 1), job()))
    assert [record["value"] for record in broker.records] == [b"1"]


def test_a_producer_that_was_fenced_gives_up(broker: Broker) -> None:
    broker.failures["commit"] = [failure(KafkaError._FENCED)]
    with pytest.raises(PipelineError, match="t-0: as told"):
        list(send_all(rows("t", 0, 1), job()))
    assert broker.records == []


def test_two_rows_at_one_position_are_refused(broker: Broker) -> None:
    with pytest.raises(PipelineError, match="two rows of t-0 have the position 2"):
        list(send_all(rows("t", 0, 1, 2, 2), job()))


def test_the_old_offset_becomes_a_header_where_asked(broker: Broker) -> None:
    item = rows("t", 0, 7)[0]._replace(headers=[("h", None)])
    list(send_all([item], job(offset_header="was-at")))
    assert broker.records[0]["headers"] == [("h", None), ("was-at", b"7")]


def test_a_row_that_is_refused_is_named_among_those_that_failed_with_it(broker: Broker) -> None:
    different = KafkaError._INVALID_DIFFERENT_RECORD
    broker.refused = {b"1": different, b"2": KafkaError.INVALID_RECORD, b"3": different}
    broker.failures["commit"] = [failure(KafkaError.INVALID_TIMESTAMP, abort=True)]
    with pytest.raises(
        PipelineError, match=r"^t-0, position 2: the row is dated 1970-01-01 00:00:01"
    ):
        list(send_all(rows("t", 0, 1, 2, 3), job()))
    assert broker.records == []


def test_rows_that_only_failed_with_others_are_sent_again(broker: Broker) -> None:
    """The client purges what waits when a transaction is aborted."""
    broker.refused = {b"1": KafkaError._PURGE_QUEUE}
    broker.failures["commit"] = [failure(KafkaError._TIMED_OUT, abort=True)]
    (sent,) = send_all(rows("t", 0, 1), job())
    assert sent.sent == 1


def test_a_batch_has_room_in_its_topic(broker: Broker) -> None:
    limits = {"t": TopicLimits.of({"max.message.bytes": "50000"})}
    list(send_all([*rows("t", 0, 1), *rows("u", 0, 1)], job(limits=limits)))
    assert broker.batch_sizes == [50_000, 1_000_000]


def test_a_row_dated_0_is_refused_unless_there_is_a_word_for_it(broker: Broker) -> None:
    """The client takes 0 for the present, so the row would lose its time."""
    (item,) = rows("t", 0, 7)
    for timestamp in (-1, 1):
        list(send_all([item._replace(timestamp=timestamp)], job()))
        broker.positions.clear()
    zero = item._replace(timestamp=0)
    with pytest.raises(PipelineError, match=r"t-0, position 7: .* 1970-01-01 .* --date-0-as 1"):
        list(send_all([zero], job()))
    list(send_all([zero], job(date_0_as=-1)))
    assert [record["timestamp"] for record in broker.records] == [-1, 1, -1]
