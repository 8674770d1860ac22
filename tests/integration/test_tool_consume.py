"""`pykafkalog consume` against a real broker."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import BrokerTool
from tests.support.installation import under_test
from tests.support.topics import make_topic

DAY_MS = 86_400_000

Consume = Callable[..., list[str]]


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """10 records in each of two partitions, a second apart, beginning a day ago."""
    make_topic(bootstrap, topic, partitions=2)
    begin = time.time_ns() // 1_000_000 - DAY_MS
    producer = Producer({"bootstrap.servers": bootstrap})
    for index in range(20):
        producer.produce(
            topic, str(index), f"k{index % 4}", partition=index % 2, timestamp=begin + 1000 * index
        )
    assert producer.flush(10) == 0
    return topic


@pytest.fixture
def tool(bootstrap: str) -> BrokerTool:
    return BrokerTool("consume", bootstrap)


@pytest.fixture
def consume(tool: BrokerTool) -> Consume:
    """The lines that the command prints."""
    return lambda *words: tool(*words).splitlines()


@contextmanager
def consuming(bootstrap: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    used = under_test()
    with used.begin([*used.tool(), "consume", "-b", bootstrap, *words]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_bounds(tool: BrokerTool, consume: Consume, filled: str) -> None:
    one = (filled, "--partition", "1")
    assert consume(*one, "--offset", "7", "--exit") == ["15", "17", "19"]
    assert consume(*one, "--offset", "-2", "--until", "end") == ["17", "19"]
    assert consume(*one, "--from-beginning", "--until", "2") == ["1", "3"]
    assert consume(*one, "--from-beginning", "--max", "1") == ["1"]
    assert consume(*one, "--exit") == []
    assert consume(filled, "-n", "3") == ["17", "18", "19"]
    assert consume(filled, "-n", "1", "--filter", "key=k1") == ["17"]
    timestamps = [r["timestamp"] for r in tool.objects(filled, "-n", "20")]
    from_5th = ("--from-timestamp", str(timestamps[5]), "--until", f"@{timestamps[8]}")
    assert sorted(consume(filled, *from_5th), key=int) == ["5", "6", "7"]
    assert len(consume(f"^{filled}$", "--from-timestamp", "25h", "--exit")) == 20


def test_an_offset_outside_of_the_log_is_refused(tool: BrokerTool, filled: str) -> None:
    said = tool.refusal(filled, "--offset", "11")
    assert said == f"pykafkalog consume: {filled}:0 has offsets 0 to 10, not 11"


def test_a_group_reads_to_the_end_and_goes_on_from_there(
    consume: Consume, filled: str, group: str, bootstrap: str
) -> None:
    words = (filled, "--group", group, "--from-beginning")
    assert len(consume(*words, "--max", "5")) == 5
    assert len(consume(*words, "--exit")) == 15
    assert consume(*words, "--exit") == []
    assert BrokerTool("groups", bootstrap).parsed("--describe", group)["lag"] == 0


def test_transactions_do_not_hide_the_end_or_the_last_record(
    consume: Consume, topic: str, group: str, bootstrap: str
) -> None:
    make_topic(bootstrap, topic, partitions=2)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
    producer.init_transactions(10)
    for value in ("committed", "aborted", "open"):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(10)
        if value != "open":
            {"committed": producer.commit_transaction, "aborted": producer.abort_transaction}[
                value
            ](10)
    try:
        assert consume(topic, "-n", "1") == ["committed"]
        assert consume(topic, "--from-beginning", "--exit", "--read-committed") == ["committed"]
        whole = (topic, "--from-beginning", "--exit")
        assert consume(*whole) == ["committed"]
        assert consume(*whole, "--group", group) == ["committed"]
        everything = ["committed", "aborted", "open"]
        assert consume(*whole, "--isolation-level", "read_uncommitted") == everything
        uncommitted = ("-X", "isolation.level=read_uncommitted")
        assert consume(*whole, *uncommitted) == everything
        assert consume(*whole, *uncommitted, "--isolation-level", "read_committed") == ["committed"]
    finally:
        producer.abort_transaction(10)


def test_an_end_beyond_the_log_is_the_end_as_it_is_now(
    consume: Consume, topic: str, bootstrap: str
) -> None:
    make_topic(bootstrap, topic, partitions=3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce(topic, str(number), partition=min(number, 1))
    producer.flush(10)  # 0: one record, 1: four, 2: none
    assert consume(topic, "--offset", "0", "--until", "2") == ["0", "1", "2"]
    assert consume(topic, "--offset", "0", "--until", "99", "--partition", "1-2") == list("1234")
    assert consume(topic, "--offset", "0", "--until", "99", "--partition", "2") == []


def test_ctrl_c_and_a_pipe_closed_early_end_it_quietly(bootstrap: str, filled: str) -> None:
    with consuming(bootstrap, filled, "--from-beginning") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (130, "")
    with consuming(bootstrap, filled, "--from-beginning") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()  # nothing more comes: it has to notice without writing
        assert process.stderr.read() == ""
        assert process.wait(20) == 1


def test_consume_ends_when_its_topic_is_deleted_or_its_broker_stops(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        make_topic(broker.bootstrap, "doomed", "kept", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for name in ("doomed", "kept"):
            producer.produce(name, "x")
        assert producer.flush(10) == 0
        with (
            consuming(broker.bootstrap, "doomed", "--from-beginning") as doomed,
            consuming(broker.bootstrap, "kept", "--from-beginning") as kept,
        ):
            assert doomed.stdout is not None
            assert kept.stdout is not None
            assert (doomed.stdout.readline(), kept.stdout.readline()) == ("x\n", "x\n")
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.delete_topics(["doomed"])["doomed"].result(10)
            _, said = doomed.communicate(timeout=30)
            assert (doomed.returncode, said) == (
                1,
                "pykafkalog consume: topic doomed is gone: it was deleted\n",
            )
            broker.stop()
            _, said = kept.communicate(timeout=30)
            assert kept.returncode == 1
            assert said.startswith("pykafkalog consume: the broker went away: cannot connect")
            assert said.count("\n") == 1
