"""`pykafkalog produce` against a real broker, and back through `consume`."""

import base64
import json
import zlib
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.command_in_process import Done, in_process
from tests.support.topics import make_topic


@pytest.fixture
def topics(bootstrap: str, topic: str) -> tuple[str, str]:
    """Two topics of two partitions each."""
    names = (topic, f"{topic}-copy")
    make_topic(bootstrap, *names, partitions=2)
    return names


def consume(bootstrap: str, *words: str) -> bytes:
    done = in_process("consume", "-b", bootstrap, *words, "--from-beginning", "--exit")
    assert done.returncode == 0, done.stderr
    return done.output


def produce(bootstrap: str, *words: str, stdin: bytes = b"") -> Done:
    return in_process("produce", "-b", bootstrap, *words, stdin=stdin)


def test_a_topic_is_copied_through_json_lines(bootstrap: str, topics: tuple[str, str]) -> None:
    original, copy = topics
    producer = Producer({"bootstrap.servers": bootstrap})
    every = bytes(range(256))
    for index, data in enumerate((None, b"", b"null", b"None", every, "é\n\u2028".encode(), b"\0")):
        producer.produce(original, key=data, value=every, partition=index % 2)
        producer.produce(original, key=b"k", value=data, partition=index % 2)
        headers = [("h", data), ("h", b"again"), ("", None)]
        producer.produce(original, "v", headers=headers, partition=index % 2)
    assert producer.flush(10) == 0
    written = consume(bootstrap, original, "--json", "--partition", "0")
    written += consume(bootstrap, original, "--json", "--partition", "1")
    assert written.count(b"\n") == 21
    done = produce(bootstrap, copy, "--json", stdin=written)
    assert (done.returncode, done.stderr) == (0, f"21 records to {copy}\n")
    read = consume(bootstrap, copy, "--json", "--partition", "0")
    read += consume(bootstrap, copy, "--json", "--partition", "1")
    assert read.replace(f'"{copy}"'.encode(), f'"{original}"'.encode()) == written


def test_text_goes_through_with_nulls_and_keys(bootstrap: str, topics: tuple[str, str]) -> None:
    text = rb"a:1" + b"\n" + rb"\N:null" + b"\n" + rb"b:\N" + b"\n"
    words = ("--key-separator", ":", "--null-marker", r"\N")
    assert produce(bootstrap, topics[0], *words, "--partition", "0", stdin=text).returncode == 0
    assert consume(bootstrap, topics[0], *words) == text
    shown = consume(bootstrap, topics[0], "--format", "{key:json} {value:json}")
    assert shown == b'"a" "1"\nnull "null"\n"b" null\n'


def test_a_bad_line_is_named_and_what_was_sent_is_there(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path
) -> None:
    (good := tmp_path / "good.txt").write_text("a:1\n")
    (bad := tmp_path / "bad.txt").write_text("b:2\nc\nd:4\n")
    done = produce(
        bootstrap, topics[0], "--key-separator", ":", "--file", str(good), "--file", str(bad)
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"pykafkalog produce: line 2 of {bad} has no ':' in it; 2 records were sent\n",
    )
    assert sorted(consume(bootstrap, topics[0]).split()) == [b"1", b"2"]


def test_a_record_that_the_broker_refuses_is_named(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, max_message_bytes="1000")
    lines = b"\n".join([b"1", b"2", b"x" * 2000, b"4", b""])
    done = produce(bootstrap, topic, "-X", "batch.num.messages=1", stdin=lines)
    assert done.returncode == 1
    assert done.stderr.startswith("pykafkalog produce: line 3 was not sent: ")
    assert done.stderr.endswith("; 3 records were sent\n")
    assert consume(bootstrap, topic).split() == [b"1", b"2", b"4"]


def test_transactions_are_all_or_nothing_or_by_n(
    bootstrap: str, topics: tuple[str, str], group: str
) -> None:
    words = (topics[0], "--key-separator", ":", "--transactional-id", group)
    bad = b"a:1\nb:2\nc:3\nd\n"
    done = produce(bootstrap, *words, stdin=bad)
    assert done.returncode == 1
    assert "line 4 has no ':' in it; nothing was committed" in done.stderr
    assert consume(bootstrap, topics[0], "--read-committed") == b""
    done = produce(bootstrap, *words, "--transaction-size", "2", stdin=bad)
    assert "2 records before it were committed" in done.stderr
    assert sorted(consume(bootstrap, topics[0], "--read-committed").split()) == [b"1", b"2"]


def test_a_record_that_cannot_be_sent_is_named_by_its_line(
    bootstrap: str, topics: tuple[str, str]
) -> None:
    large = json.dumps({"value": "x" * 1_100_000}).encode()
    for stdin, said in (
        (b'{"value": "a"}\n' + large, "line 2 was not sent: "),
        (b'{"value": "a", "partition": 2}', f"line 1 was not sent: {topics[0]} has no partition 2"),
    ):
        done = produce(bootstrap, topics[0], "--json", stdin=stdin)
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


KAFKAS_PARTITIONS = {
    # key: BuiltInPartitioner.partitionForKey(key, 7) of Apache Kafka 4.3.1
    b"": 2,
    b"a": 5,
    b"ab": 0,
    b"abc": 4,
    b"abcd": 5,
    b"abcde": 4,
    b"orders-17": 3,
    b"21": 3,
    "é".encode(): 4,
    b"\0": 0,
    b"\xff\x80\xfe": 3,
    b"a-little-bit-longer-string": 0,
}


@pytest.mark.parametrize("transactional", [False, True])
def test_a_key_goes_to_the_partition_that_kafkas_own_clients_choose(
    bootstrap: str, topic: str, transactional: bool
) -> None:
    make_topic(bootstrap, topic, partitions=7)
    lines = "".join(
        json.dumps({"key": {"base64": base64.b64encode(key).decode()}, "value": "v"}) + "\n"
        for key in KAFKAS_PARTITIONS
    )
    words = ("--transactional-id", topic) if transactional else ()
    done = produce(bootstrap, topic, "--json", *words, stdin=lines.encode())
    assert done.returncode == 0, done.stderr
    shown = consume(bootstrap, topic, "--format", "{key:base64} {partition}").splitlines()
    found = {
        base64.b64decode(key): int(number) for key, number in (one.split(b" ") for one in shown)
    }
    assert found == KAFKAS_PARTITIONS


def test_settings_of_the_client_go_before_defaults_and_options_before_settings(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path
) -> None:
    (file := tmp_path / "client.properties").write_text("partitioner=murmur2_random\n")
    words = ("--key-separator", ":", "--command-config", str(file))
    crc = ("-X", "partitioner=consistent", "-X", "client.id=a=b")
    done = produce(bootstrap, topics[0], *words, *crc, stdin=b"a:1\nab:2\nabcd:3\norders-17:4\n")
    assert done.returncode == 0, done.stderr
    shown = consume(bootstrap, topics[0], "--format", "{partition} {key}").decode().split("\n")
    by_crc = [
        f"{zlib.crc32(key) % 2} {key.decode()}" for key in (b"a", b"ab", b"abcd", b"orders-17")
    ]
    assert sorted(shown) == sorted([*by_crc, ""])
    refused = produce(bootstrap, topics[0], "-X", "acks=1", "--acks", "all", "-X", "linger.ms")
    assert (refused.returncode, refused.stderr) == (
        1,
        "pykafkalog produce: -X linger.ms: not of the form key=value\n",
    )
