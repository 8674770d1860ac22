"""`pykafkalog adopt`: directories that the broker's metadata does not know."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.topics import make_topic


def fill(broker: BrokerProcess, *names: str) -> None:
    """Topics with two partitions and three records each."""
    make_topic(broker.bootstrap, *names, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for name in names:
        for index in range(6):
            producer.produce(name, value=f"{name} {index}", partition=index % 2)
    assert producer.flush(10) == 0


def values(broker: BrokerProcess, topic: str) -> list[str]:
    done = pykafkalog("consume", "-b", broker.bootstrap, topic, "--from-beginning", "--exit")
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def expected(topic: str) -> list[str]:
    return [f"{topic} {index}" for index in range(6)]


def test_a_broker_with_a_new_store_takes_over_what_lies_there(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    with broker:
        fill(broker, "t")
    for path in broker.log_dir.glob("metadata.sqlite*"):
        path.unlink()
    with broker:
        assert "Took over topic t with 2 partitions" in broker.output()
        assert values(broker, "t") == expected("t")


def test_moved_topics_are_reported_adopted_and_served(tmp_path: Path) -> None:
    other = BrokerProcess(tmp_path / "other")
    with other:
        fill(other, "moved", "t")
    disks = (tmp_path / "disk1", tmp_path / "disk2")
    setting = ",".join(map(str, disks))
    broker = BrokerProcess(tmp_path / "here", {"log.dirs": setting})
    with broker:
        fill(broker, "t")
        refused = pykafkalog("adopt", str(broker.properties))
        assert refused.returncode == 1
        assert "lock" in refused.stderr
    for index in range(2):
        name = f"moved-{index}"
        shutil.copytree(other.log_dir / name, disks[index] / name)
    with broker:
        assert "topics that the metadata does not know: moved" in broker.output()
    rehearsed = pykafkalog("adopt", "--dry-run", str(broker.properties))
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert "1 topic to register" in rehearsed.stdout
    done = pykafkalog("adopt", str(broker.properties))
    assert done.returncode == 0, done.stderr
    assert "1 topic registered" in done.stdout
    with broker:
        assert values(broker, "moved") == expected("moved")
        assert values(broker, "t") == expected("t")
    # The other broker's `t` is another topic, whatever its name.
    shutil.copytree(other.log_dir / "t-0", disks[0] / "t-2")
    done = pykafkalog("adopt", str(broker.properties))
    assert done.returncode == 1
    assert "1 left out" in " ".join(done.stdout.split())


def test_adopt_names_an_unreadable_file_or_directory_in_one_line(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={tmp_path}/nowhere\n")
    for path, reason in ((tmp_path / "none.properties", ""), (properties, "does not exist")):
        refused = pykafkalog("adopt", str(path))
        assert refused.returncode == 1
        (line,) = refused.stderr.splitlines()
        assert reason in line


@pytest.mark.parametrize(
    ("name", "reason"),
    [("notes.txt", "is a directory that is not Kafka's"), (None, "nothing to adopt there")],
)
def test_a_directory_that_is_not_kafkas_is_left_alone(
    tmp_path: Path, name: str | None, reason: str
) -> None:
    (logs := tmp_path / "logs").mkdir()
    if name is not None:
        (logs / name).write_text("mine")
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={logs}\n")
    before = sorted(tmp_path.rglob("*"))
    for words in ((), ("--dry-run",)):
        refused = pykafkalog("adopt", *words, str(properties))
        assert refused.returncode == 1
        (line,) = refused.stderr.splitlines()
        assert reason in line
    assert sorted(tmp_path.rglob("*")) == before


def test_adopt_takes_the_file_of_a_kafka_with_zookeeper_and_names_the_line_to_remove(
    tmp_path: Path,
) -> None:
    other = BrokerProcess(tmp_path)
    with other:
        fill(other, "t")
    for path in other.log_dir.glob("metadata.sqlite*"):
        path.unlink()
    properties = tmp_path / "kafka.properties"
    properties.write_text(f"broker.id=1\nlog.dirs={other.log_dir}\nzookeeper.connect=zk:2181\n")
    done = pykafkalog("adopt", str(properties))
    assert done.returncode == 0, done.stderr
    assert "1 topic registered" in done.stdout
    assert "does not start on this file as it is: Invalid value zk:2181" in done.stdout
    assert "take the line out." in done.stdout
