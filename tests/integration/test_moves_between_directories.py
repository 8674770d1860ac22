"""Partitions move between log directories under the hands of real clients (AlterReplicaLogDirs)."""

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from protocol.records.batch import iter_batches
from tests.integration.test_transactions import committed, producer, send
from tests.support.broker_process import BrokerProcess

MOVES = 6


def broker_with_two_directories(directory: Path) -> BrokerProcess:
    directories = f"{directory}/a,{directory}/b"
    return BrokerProcess(
        directory, {"log.dirs": directories, "log.segment.bytes": "4000000", "num.partitions": "1"}
    )


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


def test_nothing_is_lost_or_doubled_while_a_partition_moves_to_and_fro(tmp_path: Path) -> None:
    with broker_with_two_directories(tmp_path) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("moved", 1, 1)])
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
        ((here, _),) = lies_in(admin, "moved")
        for _ in range(MOVES):
            target = "b" if here == "a" else "a"
            replies = admin.alter_replica_log_dirs({("moved", 0, 1): f"{tmp_path}/{target}"})
            assert [getattr(code, "errno", code) for code in replies.values()] == [0]
            deadline = time.monotonic() + 30
            while lies_in(admin, "moved") != [(target, False)]:
                assert time.monotonic() < deadline, broker.output()
                produce(500)
            here = target
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
        assert not (tmp_path / ("b" if here == "a" else "a") / "moved-0").exists()


def test_a_move_goes_on_after_kill_9(tmp_path: Path) -> None:
    with broker_with_two_directories(tmp_path) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("moved", 1, 1)])
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        count = 60_000
        for number in range(count):
            producer.produce("moved", b"%012d" % number + b"x" * 1000, partition=0)
            producer.poll(0)
        assert producer.flush(60) == 0
        ((here, _),) = lies_in(admin, "moved")
        target = "b" if here == "a" else "a"
        admin.alter_replica_log_dirs({("moved", 0, 1): f"{tmp_path}/{target}"})
        admin.close()
        broker.kill()
        assert list((tmp_path / target).glob("moved-0.*-future"))
        broker.start()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        deadline = time.monotonic() + 30
        while lies_in(admin, "moved") != [(target, False)]:
            assert time.monotonic() < deadline, broker.output()
            time.sleep(0.05)
        admin.close()
        assert numbers(broker, count) == list(range(count))
        broker.stop()
        assert whole_batches(tmp_path / target / "moved-0") == count


def test_a_group_commits_while_its_offsets_move(tmp_path: Path) -> None:
    directories = f"{tmp_path}/a,{tmp_path}/b"
    settings = {"log.dirs": directories, "offsets.topic.num.partitions": "1"}
    with BrokerProcess(tmp_path, settings) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("moved", 1, 1)])
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "committer"})
        offset = 0

        def commit() -> None:
            nonlocal offset
            offset += 1
            place = TopicPartition("moved", 0, offset)
            (told,) = consumer.commit(offsets=[place], asynchronous=False)
            assert told.error is None

        commit()
        ((here, _),) = lies_in(admin, "__consumer_offsets")
        for _ in range(MOVES):
            here = "b" if here == "a" else "a"
            admin.alter_replica_log_dirs({("__consumer_offsets", 0, 1): f"{tmp_path}/{here}"})
            deadline = time.monotonic() + 30
            while lies_in(admin, "__consumer_offsets") != [(here, False)]:
                assert time.monotonic() < deadline, broker.output()
                commit()
        admin.close()
        broker.kill()
        broker.start()
        (kept,) = consumer.committed([TopicPartition("moved", 0)], timeout=20)
        assert kept.offset == offset
        consumer.close()


def test_transactions_go_on_while_their_state_and_data_move(tmp_path: Path) -> None:
    """S-TXN-6: neither the coordinator's partition nor the data's misses a decision or a marker."""
    directories = f"{tmp_path}/a,{tmp_path}/b"
    settings = {"log.dirs": directories, "transaction.state.log.num.partitions": "1"}
    with BrokerProcess(tmp_path, settings) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("moved", 1, 1)])
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
            ((here, _),) = lies_in(admin, topic)
            there = "b" if here == "a" else "a"
            admin.alter_replica_log_dirs({(topic, 0, 1): f"{tmp_path}/{there}"})
            deadline = time.monotonic() + 30
            while lies_in(admin, topic) != [(there, False)]:
                assert time.monotonic() < deadline, broker.output()
                transaction()
        mine.begin_transaction()
        send(mine, "moved", "open at the end")
        assert committed(broker.bootstrap, "moved") == wanted
        admin.close()
        broker.kill()
        broker.start()
        mine.commit_transaction(30)
        assert committed(broker.bootstrap, "moved") == [*wanted, "open at the end"]


def numbers(broker: BrokerProcess, count: int) -> list[int]:
    """What a consumer reads, in its order."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("moved", 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value()[:12]) for message in consumer.consume(5000, timeout=1)]
    found += [int(message.value()[:12]) for message in consumer.consume(10, timeout=0.3)]
    consumer.close()
    return found


def names_of(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.log"))


def whole_batches(directory: Path) -> int:
    """Records counted in the files; offsets must follow each other without a gap."""
    count = 0
    for name in names_of(directory):
        data = (directory / name).read_bytes()
        for _, header in iter_batches(data):
            assert header.base_offset == count
            count += header.record_count
    return count
