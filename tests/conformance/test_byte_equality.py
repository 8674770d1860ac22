"""After the same requests Apache Kafka's files and ours are equal, byte for byte (S-FMT-3).

Only what must differ is left out:
- `partition.metadata`: the topic id is drawn at random. The rest of the file is compared.
- `leader-epoch-checkpoint` of a partition that was never written to: Kafka makes it with the
  partition, this broker with the first batch, which saves a sync per partition of a new topic.
- checkpoints of several partitions: Kafka writes the lines in the order of a hash map, so they are
  compared as a set of lines (with version and count in place).
- `meta.properties`, `.kafka_cleanshutdown`: they hold ids and epochs of each broker.
- LogAppendTime topics and transaction markers carry the broker's clock; markers are compared by
  replaying Kafka's own log, with the markers' times, into ours.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.log.results import AppendOrigin
from storage.os_filesystem import OsFileSystem
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import KAFKA_VERSION, SHORT_LIVED
from tests.support.manual_clock import ManualClock
from tests.support.scripted_workload import TOPICS, Outcome, run_script, transactions

pytestmark = pytest.mark.conformance

SETTINGS = {"transaction.partition.verification.enable": "false"}
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
)
TOPIC_ID = re.compile(rb"topic_id: [A-Za-z0-9_-]{22}")


class Written:
    """The directories and answers of both brokers after the requests and a clean stop."""

    def __init__(self, root: Path, version: str) -> None:
        self.ours = root / "ours"
        self.kafkas = root / "kafka"
        kafka = ApacheKafka(
            self.kafkas, SETTINGS, version=version, heap="512m", java_options=SHORT_LIVED
        )
        with kafka:
            self.kafka_outcome = run_script(kafka.port, kafka.bootstrap)
            transactions(kafka.port, kafka.bootstrap, "transactional")
            kafka.stop()
        with BrokerProcess(self.ours) as broker:
            self.our_outcome: Outcome = run_script(broker.port, broker.bootstrap)

    def files(self, topic: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return a partition's files by name: Kafka's and ours."""
        return (
            files_in(self.kafkas / "kafka-logs" / f"{topic}-0"),
            files_in(self.ours / "kafka-logs" / f"{topic}-0"),
        )


def files_in(directory: Path) -> dict[str, bytes]:
    """Return files by name, with the topic id masked."""
    return {
        path.name: TOPIC_ID.sub(b"topic_id: *", path.read_bytes())
        for path in sorted(directory.iterdir())
    }


def differences(kafkas: dict[str, bytes], ours: dict[str, bytes]) -> list[str]:
    """Return a line for each file that only one has, or that differs."""
    found = []
    for name in sorted({*kafkas, *ours}):
        theirs, mine = kafkas.get(name), ours.get(name)
        if theirs != mine:
            at = (
                next(
                    (i for i, (a, b) in enumerate(zip(theirs, mine, strict=False)) if a != b),
                    min(len(theirs), len(mine)),
                )
                if theirs is not None and mine is not None
                else None
            )
            sizes = [None if data is None else len(data) for data in (theirs, mine)]
            found.append(f"{name}: sizes {sizes[0]} (Kafka), {sizes[1]} (ours), differs at {at}")
    return found


@pytest.fixture(scope="module", params=[KAFKA_VERSION, "3.9.0"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("equal"), request.param)


@pytest.mark.parametrize("topic", sorted(TOPICS))  # "attributes" is S-FMT-4
def test_s_fmt_3_partition_files_are_byte_equal(written: Written, topic: str) -> None:
    kafkas, ours = written.files(topic)
    if topic == "empty":
        assert kafkas.pop("leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert differences(kafkas, ours) == []


def test_the_script_covers_what_it_should(written: Written) -> None:
    counts = {
        topic: sum(name.endswith(".log") for name in written.files(topic)[0]) for topic in TOPICS
    }
    assert counts["codecs"] >= 3
    assert counts["narrow"] >= 4
    assert counts["timed"] >= 4
    assert {code for _, code, _, _ in written.our_outcome.answers} >= {0, 2, 45}
    assert len(written.files("codecs")[0]["00000000000000000000.index"]) > 100


def test_the_answers_are_the_same(written: Written) -> None:
    assert written.our_outcome == written.kafka_outcome


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_s_fmt_3_checkpoints_are_equal(written: Written, name: str) -> None:
    kafkas, ours = (
        (root / "kafka-logs" / name).read_text().splitlines()
        for root in (written.kafkas, written.ours)
    )
    only_kafkas = [line for line in kafkas if not line.startswith(("transactional ", "__"))]
    assert ours[0] == kafkas[0]
    assert ours[1] == str(len(ours) - 2)
    assert sorted(ours[2:]) == sorted(only_kafkas[2:])


def replayed(source: Path, target: Path) -> Iterator[Log]:
    """Append Kafka's batches to a log of ours as its leader, and close it."""
    clock = ManualClock()
    config = TopicConfig(segment_index_bytes=120, index_interval_bytes=1, retention_ms=-1)
    target.mkdir()
    log = load_log(
        OsFileSystem(),
        clock,
        str(target),
        TopicPartition("transactional", 0),
        LoadOptions(config=config, clean=True),
        Random(1),
    )
    for path in sorted(source.glob("*.log")):
        data = path.read_bytes()
        for position, header in iter_batches(data):
            batch = bytearray(data[position : position + header.size])
            batch[:8] = bytes(8)
            origin = AppendOrigin.COORDINATOR if header.is_control else AppendOrigin.CLIENT
            info = log.append_as_leader(
                memoryview(batch), leader_epoch=header.partition_leader_epoch, origin=origin
            )
            assert info.first_offset == header.base_offset
            log.update_high_watermark(log.log_end_offset)
    yield log
    at_once(log.flush())
    at_once(log.close())


def test_s_fmt_3_transactions_and_their_index_are_byte_equal(
    written: Written, tmp_path: Path
) -> None:
    source = written.kafkas / "kafka-logs" / "transactional-0"
    for log in replayed(source, tmp_path / "ours"):
        assert log.last_stable_offset < log.log_end_offset
    kafkas, ours = files_in(source), files_in(tmp_path / "ours")
    kafkas.pop("partition.metadata")
    ours.pop("partition.metadata", None)
    assert sum(name.endswith(".txnindex") for name in kafkas) >= 2
    assert differences(kafkas, ours) == []


@pytest.mark.parametrize("topic", ["codecs", "narrow", "timed", "transactional"])
def test_s_rec_3_recovery_makes_the_files_that_kafka_had(
    written: Written, topic: str, tmp_path: Path
) -> None:
    """Indexes, aborted transactions and snapshots are rebuilt from the records, byte for byte."""
    source = written.kafkas / "kafka-logs" / f"{topic}-0"
    target = tmp_path / f"{topic}-0"
    target.mkdir()
    for path in source.glob("*.log"):
        shutil.copy(path, target)
    kafkas = files_in(source)
    own = {k.replace(".", "_"): v for k, v in TOPICS.get(topic, {}).items()}
    if topic == "transactional":
        own = {"segment_index_bytes": "120", "index_interval_bytes": "1"}
    config = TopicConfig(retention_ms=-1, **{k: int(v) for k, v in own.items()})  # type: ignore[arg-type]
    options = LoadOptions(config=config, clean=False)
    log = load_log(
        OsFileSystem(), ManualClock(), str(target), TopicPartition(topic, 0), options, Random(1)
    )
    at_once(log.flush())
    at_once(log.close())
    ours = files_in(target)
    kafkas.pop("partition.metadata")
    assert differences(kafkas, ours) == []
