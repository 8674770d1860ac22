"""`pykafkalog topics`: sizes, trim and watch against a real broker."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.command_in_process import in_process
from tests.support.installation import under_test


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """100 records in each of two partitions, a second apart from 1000 s on."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    forever = NewTopic(topic, 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([forever])[topic].result(10)
    producer = Producer({"bootstrap.servers": bootstrap})
    for index in range(200):
        at = 1_000_000 + index // 2 * 1000
        producer.produce(topic, b"x" * 100, partition=index % 2, timestamp=at)
    assert producer.flush(10) == 0
    return topic


def topics(bootstrap: str, *words: str) -> Any:
    done = in_process("topics", "-b", bootstrap, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(bootstrap: str, *words: str) -> str:
    done = in_process("topics", "-b", bootstrap, *words)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


def starts(bootstrap: str, topic: str) -> list[int]:
    (described,) = topics(bootstrap, "--describe", topic)
    return [partition["start"] for partition in described["partitions"]]


def test_sizes_and_descriptions(bootstrap: str, filled: str) -> None:
    (sized,) = topics(bootstrap, "--sizes", filled)
    assert (sized["partitions"], sized["records"]) == (2, 200)
    assert 20_000 < sized["bytes"] == sized["bytes_of_all_replicas"]
    (described,) = topics(bootstrap, "--describe", filled)
    assert described["configs"] == {"retention.ms": "-1"}
    first = described["partitions"][0]
    assert (first["leader"], first["in_sync"], first["start"], first["end"]) == (1, [1], 0, 100)
    assert filled in [each["topic"] for each in topics(bootstrap)]
    shown = in_process("topics", "-b", bootstrap, "--sizes").stdout
    assert [filled, "2", "200"] in [line.split()[:3] for line in shown.splitlines()]


def test_trim_by_offset_time_and_to_the_end(bootstrap: str, filled: str) -> None:
    planned = topics(bootstrap, "--trim", filled, "--before", "10", "--dry-run")
    assert [(each["deleted"], each["dry_run"]) for each in planned] == [(10, True)] * 2
    assert starts(bootstrap, filled) == [0, 0]
    topics(bootstrap, "--trim", f"{filled}:1", "--before", "10")
    assert starts(bootstrap, filled) == [0, 10]
    topics(bootstrap, "--trim", filled, "--before", "1970-01-01T00:16:45")  # 1005 s
    assert starts(bootstrap, filled) == [5, 10]
    said = refusal(bootstrap, "--trim", filled, "--before", "101")
    assert f"{filled}:0 has offsets 5 to 100, not 101; nothing was deleted" in said
    topics(bootstrap, "--trim", filled, "--before", "end")
    assert starts(bootstrap, filled) == [100, 100]


def test_what_is_not_trimmed(bootstrap: str, filled: str, topic: str) -> None:
    compacted = f"{topic}-compacted"
    create = ("--create", compacted, "--config", "cleanup.policy=compact", "--partitions", "1")
    topics(bootstrap, *create)
    done = in_process("produce", compacted, "-b", bootstrap, "--key", "k", stdin=b"v\n")
    assert done.returncode == 0, done.stderr
    said = refusal(bootstrap, "--trim", compacted, "--before", "end")
    assert "records can only be deleted where cleanup.policy has `delete`" in said
    assert "has no partition 7" in refusal(bootstrap, "--trim", f"{filled}:7", "--before", "1")
    assert "--before WHERE go together" in refusal(bootstrap, "--trim", filled)


def test_a_watched_topic_grows_and_ctrl_c_ends_it_quietly(bootstrap: str, filled: str) -> None:
    used = under_test()
    process = subprocess.Popen(
        [*used.tool(), "topics", "-b", bootstrap, "--watch", filled, "--interval", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=used.directory,
        env=used.process_environment(),
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    assert (first["topic"], first["records"], first["new_records"]) == (filled, 200, 0)
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(50):
        producer.produce(filled, b"x" * 100, partition=0)
    assert producer.flush(10) == 0
    deadline = time.monotonic() + 10
    rates = [0.0]
    while (now := json.loads(process.stdout.readline()))["new_records"] < 50:
        rates.append(now["records_per_s"])
        assert time.monotonic() < deadline
    assert now["grown_bytes"] > 0
    assert max([*rates, now["records_per_s"]]) > 10
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stdout.close()
    process.stderr.close()


def test_a_topic_deleted_while_watched_ends_it(bootstrap: str, filled: str) -> None:
    used = under_test()
    process = subprocess.Popen(
        [*used.tool(), "topics", "-b", bootstrap, "--watch", filled, "--interval", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=used.directory,
        env=used.process_environment(),
    )
    assert process.stdout is not None
    process.stdout.readline()
    topics(bootstrap, "--delete", filled)
    _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (
        1,
        f"pykafkalog topics: there is no topic {filled} any more\n",
    )
