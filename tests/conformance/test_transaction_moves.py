"""Transactions that one broker began continue at the other (S-FMT-2, S-TXN-6).

Apache Kafka and this broker hand one directory to each other, after kill -9, while transactions are
open, overdue, or decided and half carried out:

* `mine` is open, and its producer commits it at the other broker;
* `late` is open and has lost its producer: the other broker aborts it after its timeout;
* `gone` was aborted before the move and stays so;
* `half` is decided, and one of its two partitions has the marker. A test cannot kill a broker at
  that instant, so it cuts the files as the kill would leave them: the record that all markers are
  written, and the marker of one partition, are the last of their segments and are removed.
"""

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.coordinator.transaction.records import decode_value
from broker.coordinator.transaction.state import TransactionState
from protocol.records.batch import BatchHeader, iter_batches
from protocol.records.record import iter_records
from tests.integration.test_transactions import committed, uncommitted
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import KAFKA_VERSION, SHORT_LIVED
from tests.support.raw_transactions import RawTransaction

pytestmark = pytest.mark.conformance

Broker = ApacheKafka | BrokerProcess
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
AT = int(time.time() * 1000)
"""Now, because markers get the clock's time, and a segment must not span a week."""
SEGMENT = "00000000000000000000.log"


def make_topics(broker: Broker) -> None:
    """Make the topics, and the internal ones, which the other broker must know as well."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    wishes = [
        NewTopic(name, count, 1, config={"retention.ms": "-1"})
        for name, count in (("t", 1), ("halves", 2))
    ]
    for made in admin.create_topics(wishes).values():
        made.result(30)
    RawTransaction("first", version=1).begin(broker.port)


def last_batch(segment: Path) -> tuple[int, BatchHeader]:
    """Return position and header of the last batch of a segment."""
    *_, (position, header) = iter_batches(segment.read_bytes())
    return position, header


def cut_last_batch(segment: Path, *, control: bool) -> None:
    position, header = last_batch(segment)
    assert header.is_control == control
    with segment.open("r+b") as file:
        file.truncate(position)


def undo_half(log_dir: Path) -> None:
    """After a kill, leave the last transaction decided, with one of its two markers."""
    state = log_dir / "__transaction_state-0" / SEGMENT
    data = state.read_bytes()
    position, _ = last_batch(state)
    (record,) = iter_records(data, position)
    assert record.value is not None
    assert decode_value(bytes(record.value)).state is TransactionState.COMPLETE_COMMIT
    cut_last_batch(state, control=False)
    cut_last_batch(log_dir / "halves-1" / SEGMENT, control=True)


def begin_all(broker: Broker, version: int) -> RawTransaction:
    """Begin the transactions of the module's list; return the producer of `mine`."""
    port = broker.port
    mine = RawTransaction("mine", version=version)
    mine.begin(port)
    mine.send(port, "t", 0, b"mine before", at=AT)
    late = RawTransaction("late", version=version, timeout_ms=8_000)
    late.begin(port)
    late.send(port, "t", 0, b"late", at=AT)
    gone = RawTransaction("gone", version=version)
    gone.begin(port)
    gone.send(port, "t", 0, b"gone", at=AT)
    gone.end(port, commit=False)
    assert gone.wait_at_rest(port) == "CompleteAbort"
    half = RawTransaction("half", version=version)
    half.begin(port)
    for partition in (0, 1):
        half.send(port, "halves", partition, b"half %d" % partition, at=AT)
    half.end(port, commit=True)
    assert half.wait_at_rest(port) == "CompleteCommit"
    return mine


def go_on(broker: Broker, mine: RawTransaction, version: int) -> None:
    """Continue at the other broker."""
    port = broker.port
    half = RawTransaction("half", version=version)
    assert half.wait_at_rest(port) == "CompleteCommit"
    assert sorted(committed(broker.bootstrap, "halves", partitions=2)) == ["half 0", "half 1"]
    late = RawTransaction("late", version=version)
    assert late.wait_at_rest(port) == "CompleteAbort"
    assert committed(broker.bootstrap, "t") == []  # `mine` is open
    mine.send(port, "t", 0, b"mine after", at=AT + 1)
    mine.end(port, commit=True)
    assert mine.wait_at_rest(port) == "CompleteCommit"
    for name in ("late", "half", "gone"):
        heir = RawTransaction(name, version=version)
        heir.begin(port)
        heir.send(port, "t", 0, name.encode() + b"'s heir", at=AT + 2)
        heir.end(port, commit=True)
        assert heir.wait_at_rest(port) == "CompleteCommit"
    heirs = ["late's heir", "half's heir", "gone's heir"]
    assert committed(broker.bootstrap, "t") == ["mine before", "mine after", *heirs]
    assert uncommitted(broker.bootstrap, "t") == [
        *("mine before", "late", "gone", "mine after"),
        *heirs,
    ]


def kafka_on(root: Path, version: str) -> ApacheKafka:
    return ApacheKafka(root, SETTINGS, version=version, heap="512m", java_options=SHORT_LIVED)


@pytest.mark.parametrize(
    ("kafka", "version"), [(KAFKA_VERSION, 2), (KAFKA_VERSION, 1), ("3.9.0", 1)]
)
def test_s_txn_6_what_kafka_left_open_goes_on_here(
    tmp_path: Path, kafka: str, version: int
) -> None:
    with kafka_on(tmp_path, kafka) as theirs:
        make_topics(theirs)
        mine = begin_all(theirs, version)
        theirs.kill()
    undo_half(theirs.log_dir)
    with BrokerProcess(tmp_path, SETTINGS) as ours:
        go_on(ours, mine, version)


@pytest.mark.parametrize(
    ("kafka", "version"), [(KAFKA_VERSION, 2), (KAFKA_VERSION, 1), ("3.9.0", 1)]
)
def test_s_txn_6_what_was_left_open_here_goes_on_at_kafka(
    tmp_path: Path, kafka: str, version: int
) -> None:
    with kafka_on(tmp_path, kafka) as theirs:
        make_topics(theirs)
        theirs.stop()
    with BrokerProcess(tmp_path, SETTINGS) as ours:
        mine = begin_all(ours, version)
        ours.kill()
    undo_half(ours.log_dir)
    with kafka_on(tmp_path, kafka) as theirs:
        go_on(theirs, mine, version)
