"""Partitions move between log directories under the hands of real clients (AlterReplicaLogDirs)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.admin import KafkaAdminClient

from protocol.records.batch import iter_batches
from tests.integration.test_transactions import committed, producer, send
from tests.support.broker_process import BrokerProcess
from tests.support.topics import make_topic

MOVES = 6


@contextmanager
def two_directories(directory: Path, **settings: str) -> Iterator[BrokerProcess]:
    """A broker with the log directories `a` and `b`, and with the topic `moved`."""
    own = {key.replace("_", "."): value for key, value in settings.items()}
    with BrokerProcess(directory, {"log.dirs": f"{directory}/a,{directory}/b", **own}) as broker:
        make_topic(broker.bootstrap, "moved")
        yield broker


def lies_in(admin: Any, topic: str) -> list[tuple[str, bool]]:
    """(log directory, whether it is a future log) of partition 0."""
    return sorted(
        (Path(directory["log_dir"]).name, partition["is_future_key"])
        for broker in admin.describe_log_dirs()
        for directory in broker["log_dirs"]
        for described in directory["topics"]
        if described["name"] == topic
        for partition in described["partitions"]
    )


def other_than(directory: str) -> str:
    return "b" if directory == "a" else "a"


def begin_move(broker: BrokerProcess, admin: Any, topic: str) -> str:
    """Begin to move partition 0 to the other log directory; return the name of that."""
    ((here, _),) = lies_in(admin, topic)
    there = other_than(here)
    replies = admin.alter_replica_log_dirs({(topic, 0, 1): f"{broker.directory}/{there}"})
    assert [getattr(code, "errno", code) for code in replies.values()] == [0]
    return there


def wait_for_move(
    broker: BrokerProcess, admin: Any, topic: str, there: str, meanwhile: Callable[[], None]
) -> None:
    """Wait until the partition lies in the directory `there`, doing something all the time."""
    deadline = time.monotonic() + 30
    while lies_in(admin, topic) != [(there, False)]:
        assert time.monotonic() < deadline, broker.output()
        meanwhile()


def move(broker: BrokerProcess, admin: Any, topic: str, meanwhile: Callable[[], None]) -> str:
    """Move partition 0 to the other log directory; return the name of that."""
    there = begin_move(broker, admin, topic)
    wait_for_move(broker, admin, topic, there, meanwhile)
    return there


def test_nothing_is_lost_or_doubled_while_a_partition_moves_to_and_fro(tmp_path: Path) -> None:
    with two_directories(tmp_path, log_segment_bytes="4000000") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 2}
        )
        acknowledged: list[int] = []
        failures: list[Any] = []

        def told(number: int) -> Any:
            return lambda error, _: failures.append(error) if error else acknowledged.append(number)

        sent = 0

        def produce(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                value = b"%012d" % sent + b"x" * 1000
                producer.produce("moved", value, partition=0, on_delivery=told(sent))
                sent += 1
                producer.poll(0)

        produce(20_000)
        producer.flush(30)
        for _ in range(MOVES):
            here = move(broker, admin, "moved", lambda: produce(500))
        producer.flush(30)
        assert failures == []
        assert sorted(acknowledged) == list(range(sent))
        assert numbers(broker, sent) == list(range(sent))
        admin.close()
        broker.kill()
        broker.start()
        assert numbers(broker, sent) == list(range(sent))
        broker.stop()
        assert whole_batches(tmp_path / here / "moved-0") == sent
        assert not (tmp_path / other_than(here) / "moved-0").exists()


def test_a_move_goes_on_after_kill_9(tmp_path: Path) -> None:
    with two_directories(tmp_path, log_segment_bytes="4000000") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        count = 60_000
        for number in range(count):
            producer.produce("moved", b"%012d" % number + b"x" * 1000, partition=0)
            producer.poll(0)
        assert producer.flush(60) == 0
        target = begin_move(broker, admin, "moved")
        admin.close()
        broker.kill()
        assert list((tmp_path / target).glob("moved-0.*-future"))
        broker.start()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        wait_for_move(broker, admin, "moved", target, lambda: time.sleep(0.05))
        admin.close()
        assert numbers(broker, count) == list(range(count))
        broker.stop()
        assert whole_batches(tmp_path / target / "moved-0") == count


def test_a_group_commits_while_its_offsets_move(tmp_path: Path) -> None:
    with two_directories(tmp_path, offsets_topic_num_partitions="1") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "committer"})
        offset = 0

        def commit() -> None:
            nonlocal offset
            offset += 1
            place = TopicPartition("moved", 0, offset)
            (told,) = consumer.commit(offsets=[place], asynchronous=False)
            assert told.error is None

        commit()
        for _ in range(MOVES):
            move(broker, admin, "__consumer_offsets", commit)
        admin.close()
        broker.kill()
        broker.start()
        (kept,) = consumer.committed([TopicPartition("moved", 0)], timeout=20)
        assert kept.offset == offset
        consumer.close()


def test_transactions_go_on_while_their_state_and_data_move(tmp_path: Path) -> None:
    """S-TXN-6: neither the coordinator's partition nor the data's misses a decision or a marker."""
    with two_directories(tmp_path, transaction_state_log_num_partitions="1") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        mine = producer(broker.bootstrap, "mover")
        wanted: list[str] = []
        turns = 0

        def transaction() -> None:
            nonlocal turns
            turns += 1
            mine.begin_transaction()
            send(mine, "moved", str(turns))
            if turns % 3:
                mine.commit_transaction(30)
                wanted.append(str(turns))
            else:
                mine.abort_transaction(30)

        transaction()
        for topic in ("__transaction_state", "moved") * (MOVES // 2):
            move(broker, admin, topic, transaction)
        mine.begin_transaction()
        send(mine, "moved", "open at the end")
        assert committed(broker.bootstrap, "moved") == wanted
        admin.close()
        broker.kill()
        broker.start()
        mine.commit_transaction(30)
        assert committed(broker.bootstrap, "moved") == [*wanted, "open at the end"]


def numbers(broker: BrokerProcess, count: int) -> list[int]:
    """Return the numbers of the records that a consumer reads, in their order."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("moved", 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value()[:12]) for message in consumer.consume(5000, timeout=1)]
    found += [int(message.value()[:12]) for message in consumer.consume(10, timeout=0.3)]
    consumer.close()
    return found


def whole_batches(directory: Path) -> int:
    """Count the records in the files. Raises AssertionError if there is a gap between offsets."""
    count = 0
    for path in sorted(directory.glob("*.log")):
        for _, header in iter_batches(path.read_bytes()):
            assert header.base_offset == count
            count += header.record_count
    return count
