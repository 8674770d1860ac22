"""Kafka's own kafka-features, kafka-reassign-partitions and kafka-transactions.

Each test has a broker of its own; PYKAFKALOG_TEST_BROKER=apache runs them on Apache Kafka.
"""

import json
import re
import time
from pathlib import Path

from confluent_kafka import Producer

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.integration.test_transactions import (
    committed,
    producer,
    send,
    uncommitted,
)
from tests.integration.test_transactions_wire import Peer
from tests.support.either_broker import EitherBroker, either_broker
from tests.support.kafka_jars import java
from tests.support.topics import make_topic
from tests.support.wire_client import WireClient

TOOLS = "org.apache.kafka.tools"


def own_broker(directory: Path, **settings: str) -> EitherBroker:
    return either_broker(directory, {key.replace("_", "."): text for key, text in settings.items()})


# ---- kafka-features


def features(bootstrap: str, *args: str, check: bool = True) -> str:
    result = java(f"{TOOLS}.FeatureCommand", "--bootstrap-server", bootstrap, *args, check=check)
    if not check:
        assert result.returncode != 0
    return result.stdout + result.stderr


def finalized(bootstrap: str) -> tuple[str, int]:
    """(level of transaction.version, epoch of the features)."""
    [line] = [one for one in features(bootstrap, "describe").splitlines() if "transaction." in one]
    # Feature: … SupportedMinVersion: 0 SupportedMaxVersion: 2 FinalizedVersionLevel: 2 Epoch: 5
    told = dict(zip(line.split()[::2], line.split()[1::2], strict=True))
    assert (told["SupportedMinVersion:"], told["SupportedMaxVersion:"]) == ("0", "2")
    return told["FinalizedVersionLevel:"], int(told["Epoch:"])


def epoch_after_transactions(bootstrap: str, topic: str, transactional_id: str) -> int:
    """The epoch after Kafka's own perf test made transactions with this id."""
    java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "5000", "--bootstrap-server", bootstrap),
        *("--transaction-duration-ms", "100", "--transactional-id", transactional_id),
    )
    result = java(
        f"{TOOLS}.TransactionsCommand",
        *("--bootstrap-server", bootstrap, "describe", "--transactional-id", transactional_id),
    )
    head, row = (line.split("\t") for line in result.stdout.splitlines()[-2:])
    described = dict(zip((name.strip() for name in head), row, strict=False))
    return int(described["ProducerEpoch"])


def test_s_txn_7_kafka_features_downgrades_and_upgrades_transactions(tmp_path: Path) -> None:
    with own_broker(tmp_path) as broker:
        bootstrap = broker.bootstrap
        make_topic(bootstrap, "t")
        level, epoch = finalized(bootstrap)
        assert level == "2"
        assert epoch_after_transactions(bootstrap, "t", "two") > 3

        for refused in (
            ("upgrade", "--feature", "transaction.version=3"),
            ("upgrade", "--feature", "transaction.version=1"),
            ("upgrade", "--feature", "no.such.feature=1"),
        ):
            assert "Could not" in features(bootstrap, *refused, check=False), refused
        assert finalized(bootstrap)[0] == "2"

        features(bootstrap, "downgrade", "--feature", "transaction.version=1")
        level, later = finalized(bootstrap)
        assert level == "1" and later > epoch
        # Java falls back to the first protocol: one epoch per owner.
        assert epoch_after_transactions(bootstrap, "t", "one") == 0
        # A producer that had transactions of version 2 uses the first protocol from now on.
        before = len(committed(bootstrap, "t"))
        mine = producer(bootstrap, "two")
        mine.begin_transaction()
        send(mine, "t", "x")
        mine.commit_transaction(30)
        assert len(committed(bootstrap, "t")) == before + 1

        broker.stop()
        broker.start()
        assert finalized(bootstrap)[0] == "1"
        features(bootstrap, "upgrade", "--feature", "transaction.version=2")
        assert finalized(bootstrap)[0] == "2"
        assert epoch_after_transactions(bootstrap, "t", "one") > 3


# ---- kafka-reassign-partitions


def reassign(bootstrap: str, plan: Path, *args: str, check: bool = True) -> str:
    result = java(
        f"{TOOLS}.reassign.ReassignPartitionsCommand",
        *("--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan), *args),
        check=check,
    )
    return result.stdout + result.stderr


def directory_of(parents: list[Path], partition: str) -> Path:
    [found] = [parent for parent in parents if (parent / partition).exists()]
    return found


def test_kafka_reassign_partitions_moves_between_log_directories(tmp_path: Path) -> None:
    parents = [tmp_path / "a", tmp_path / "b"]
    broker = own_broker(tmp_path, log_dirs=",".join(map(str, parents)))
    with broker:
        bootstrap = broker.bootstrap
        make_topic(bootstrap, "moved", partitions=2)
        sender = Producer({"bootstrap.servers": bootstrap})
        for number in range(1000):
            sender.produce("moved", b"%d" % number + b"x" * 1000, partition=number % 2)
            sender.poll(0)
        assert sender.flush(30) == 0
        here = directory_of(parents, "moved-0")
        there = parents[1 - parents.index(here)]
        plan = tmp_path / "plan.json"

        def write_plan(replicas: list[int], directories: list[str]) -> None:
            partition = {
                "topic": "moved",
                "partition": 0,
                "replicas": replicas,
                "log_dirs": directories,
            }
            plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))

        write_plan([1], [str(there)])
        told = reassign(bootstrap, plan, "--execute")
        assert "Successfully started partition reassignment for moved-0" in told
        assert f"log directory to {there} for replica moved-0 with broker 1" in told
        deadline = time.monotonic() + 30
        while "still in progress" in (told := reassign(bootstrap, plan, "--verify")):
            assert time.monotonic() < deadline, told
        assert "Reassignment of partition moved-0 is completed" in told
        assert "Reassignment of replica moved-0-1 completed successfully" in told
        assert directory_of(parents, "moved-0") == there
        assert len(committed(bootstrap, "moved", partitions=2)) == 1000

        listed = reassign_list(bootstrap)
        assert "No partition reassignments found" in listed
        told = reassign(bootstrap, plan, "--cancel")
        assert "None of the specified partition moves are active" in told
        write_plan([2], ["any"])
        told = reassign(bootstrap, plan, "--execute", check=False)
        assert "Unknown broker id 2" in told
        write_plan([1], [str(tmp_path / "elsewhere")])
        told = reassign(bootstrap, plan, "--execute", "--timeout", "2000", check=False)
        assert "LogDirNotFoundException" in told or "log directory" in told
        assert directory_of(parents, "moved-0") == there


def test_which_replica_sets_a_reassignment_may_name(tmp_path: Path) -> None:
    with own_broker(tmp_path) as broker:
        make_topic(broker.bootstrap, "t")
        wire = WireClient(broker.port)

        def ask(version: int, replicas: list[int] | None, *, index: int = 0, fixed: bool) -> int:
            partition = ReassignablePartition(partition_index=index, replicas=replicas)
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=10_000,
                allow_replication_factor_change=not fixed,
                topics=[ReassignableTopic(name="t", partitions=[partition])],
            )
            response = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)
            assert response.error_code == 0
            return int(response.responses[0].partitions[0].error_code)

        invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        for version, fixed in ((0, False), (1, False), (1, True)):
            assert ask(version, [1], fixed=fixed) == 0
            for replicas in ([2], [], [1, 2], [1, 1]):
                assert ask(version, replicas, fixed=fixed) == invalid
            nothing = ask(version, None, fixed=fixed)
            assert nothing == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            unknown = ask(version, [1], index=3, fixed=fixed)
            assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wire.close()


def reassign_list(bootstrap: str) -> str:
    return java(
        f"{TOOLS}.reassign.ReassignPartitionsCommand", "--bootstrap-server", bootstrap, "--list"
    ).stdout


# ---- kafka-transactions and a transaction that nobody will ever end


def transactions(bootstrap: str, *args: str) -> list[list[str]]:
    result = java(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", bootstrap, *args)
    return [line.split() for line in result.stdout.splitlines()]


def test_s_txn_7_without_verification_a_late_batch_hangs_until_an_admin_aborts_it(
    tmp_path: Path,
) -> None:
    """transaction.partition.verification.enable=false is as Kafka was before KIP-890."""
    settings = {"transaction_partition_verification_enable": "false"}
    with own_broker(tmp_path, **settings) as broker:
        bootstrap = broker.bootstrap
        make_topic(bootstrap, "t")
        peer = Peer(bootstrap, "late")
        peer.init()
        assert peer.add("t", 0) == 0
        assert peer.produce(9, "t") == 0
        assert peer.end(1, commit=True) == 0
        deadline = time.monotonic() + 30
        while committed(bootstrap, "t") != ["v"]:
            assert time.monotonic() < deadline
        assert peer.produce(9, "t") == 0
        peer.wire.close()
        # The record at 0, the marker at 1; the late one is at 2.
        assert committed(bootstrap, "t") == ["v"]
        assert len(uncommitted(bootstrap, "t")) == 2
        search = ("find-hanging", "--topic", "t", "--max-transaction-timeout", "0")
        [found] = [row for row in transactions(bootstrap, *search) if row[:2] == ["t", "0"]]
        assert str(peer.producer_id) in found
        transactions(bootstrap, "abort", "--topic", "t", "--partition", "0", "--start-offset", "2")
        assert not [row for row in transactions(bootstrap, *search) if row[:2] == ["t", "0"]]
        send_plain(bootstrap, "t", b"after")
        assert committed(bootstrap, "t") == ["v", "after"]


def send_plain(bootstrap: str, topic: str, value: bytes) -> None:
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, value, partition=0)
    assert plain.flush(30) == 0


# ---- kafka-leader-election, kafka-topics in pages, kafka-client-metrics


def election(bootstrap: str, *args: str) -> tuple[int, str]:
    result = java(
        f"{TOOLS}.LeaderElectionCommand", "--bootstrap-server", bootstrap, *args, check=False
    )
    return result.returncode, result.stdout + result.stderr


def test_kafka_leader_election_hears_that_there_is_nothing_to_elect(tmp_path: Path) -> None:
    with own_broker(tmp_path) as broker:
        make_topic(broker.bootstrap, "t", partitions=2)
        for kind in ("preferred", "unclean"):
            chosen = ("--election-type", kind)
            code, said = election(broker.bootstrap, *chosen, "--all-topic-partitions")
            assert (code, said.strip()) == (0, "")
            code, said = election(broker.bootstrap, *chosen, "--topic", "t", "--partition", "1")
            assert code == 0 and "Valid replica already elected for partitions t-1" in said
            code, said = election(broker.bootstrap, *chosen, "--topic", "no", "--partition", "0")
            assert code != 0 and "No such topic as no" in said


def test_kafka_topics_describes_more_than_fits_into_a_page(tmp_path: Path) -> None:
    with own_broker(tmp_path, max_request_partition_size_limit="3") as broker:
        for name, partitions in (("a", 2), ("b", 7), ("c", 1)):
            make_topic(broker.bootstrap, name, partitions=partitions)
        described = java(
            f"{TOOLS}.TopicCommand",
            *("--bootstrap-server", broker.bootstrap, "--describe"),
            *("--partition-size-limit-per-response", "2"),
        )
        rows = re.findall(r"Topic: (\w+)\s+Partition: (\d+)\s+Leader: (-?\d+)", described.stdout)
        assert [(name, int(index)) for name, index, _ in rows] == [
            *(("a", 0), ("a", 1)),
            *(("b", index) for index in range(7)),
            ("c", 0),
        ]
        assert {leader for _, _, leader in rows} == {"1"}
        listed = java(
            f"{TOOLS}.ClientMetricsCommand", "--bootstrap-server", broker.bootstrap, "--list"
        )
        assert listed.stdout.strip() == ""
