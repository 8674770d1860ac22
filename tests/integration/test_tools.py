"""The `pykafkalog` command line over the wire."""

import json
import time

from tests.support.command_in_process import BrokerTool
from tests.support.topics import make_topic


def run(bootstrap: str, command: str, *words: str, stdin: str = "") -> str:
    return BrokerTool(command, bootstrap)(*words, stdin=stdin.encode())


def test_topics_are_created_listed_described_altered_and_deleted(
    bootstrap: str, topic: str
) -> None:
    words = (topic, "--partitions", "2", "--config", "retention.ms=5000")
    assert run(bootstrap, "topics", "--create", *words) == f"Created topic {topic}.\n"
    assert topic in run(bootstrap, "topics").splitlines()
    assert "retention.ms=5000" in run(bootstrap, "topics", "--describe", topic)
    run(bootstrap, "topics", "--alter", topic, "--partitions", "3")
    deadline = time.monotonic() + 10  # Apache Kafka's brokers learn of it a little later
    while "3 partitions" not in run(bootstrap, "topics", "--describe", topic):
        assert time.monotonic() < deadline
    run(bootstrap, "topics", "--delete", topic)
    assert topic not in run(bootstrap, "topics").splitlines()


def test_several_topics_are_created_at_once(bootstrap: str, topic: str) -> None:
    one, two, three = (f"{topic}-{number}" for number in (1, 2, 3))
    made = run(bootstrap, "topics", "--create", one, two, one, "--partitions", "2")
    assert made == f"Created topic {one}.\nCreated topic {two}.\n"
    stands = run(bootstrap, "topics", "--create", two, three, "--if-not-exists")
    assert stands == f"Topic {two} stands already.\nCreated topic {three}.\n"
    assert run(bootstrap, "get-offsets", one, two).count("\n") == 4
    done = BrokerTool("topics", bootstrap).run("--create", one, f"{topic}-4", two)
    assert (done.returncode, done.stdout) == (1, f"Created topic {topic}-4.\n")
    assert one in done.stderr
    assert two in done.stderr


def test_topics_are_named_as_in_kafkas_tools(bootstrap: str, topic: str) -> None:
    one, two = f"{topic}-1", f"{topic}-2"
    made = run(bootstrap, "topics", "--create", "--topic", one, "--topic", two, "--partitions", "1")
    assert made == f"Created topic {one}.\nCreated topic {two}.\n"
    run(bootstrap, "topics", "--alter", "--topic", one, "--partitions", "2")
    assert run(bootstrap, "topics", "--describe", "--topic", two).startswith(f"{two}  1 partition")
    run(bootstrap, "produce", "--topic", two, stdin="x\n")
    words = ("--from-beginning", "--exit")
    assert run(bootstrap, "consume", "-t", two, *words) == "x\n"
    changed = run(bootstrap, "configs", "--alter", "--topic", two, "--add-config", "segment.ms=1,"
                  "cleanup.policy=[compact,delete],retention.ms=5")  # fmt: skip
    assert "compact,delete" in changed
    run(bootstrap, "configs", "--topic", two, "--delete-config", "segment.ms,retention.ms")
    shown = run(bootstrap, "configs", "--describe", "--topic", two)
    assert "cleanup.policy" in shown
    assert "retention.ms" not in shown
    run(bootstrap, "topics", "--delete", "--topic", two, "--topic", one)
    for (command, *words), said in (
        (("topics", "--create"), "--create: which topic?"),
        (("topics", "--delete"), "--delete: which topic?"),
        (("topics", "--topic", one), "--topic goes with"),
        (("consume",), "which topic?"),
        (("produce", one, "-t", two), "lines go to one topic"),
    ):
        assert said in BrokerTool(command, bootstrap).refusal(*words)


def test_offsets_at_kafkas_special_times(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, f"{topic}b", partitions=2)
    lines = [{"partition": 0, "timestamp": moment, "value": "v"} for moment in (2000, 4000, 3000)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    run(bootstrap, "produce", topic, "--json", stdin=text)
    run(bootstrap, "topics", "--trim", f"{topic}:0", "--before", "1")
    for moment, found in (
        ("-1", "3"),
        ("-2", "1"),
        ("earliest", "1"),
        ("-3", "1"),
        ("max-timestamp", "1"),
        ("-4", "1"),
        ("-5", ""),
        ("-6", ""),
        ("0", "1"),
        ("4000", "1"),
        ("4001", ""),
        ("1970-01-01T00:00:03", "1"),
    ):
        words = ("get-offsets", f"{topic}:0", "--time", moment)
        assert run(bootstrap, *words) == f"{topic}:0:{found}\n", moment
    both = f"{topic}:1:0\n{topic}b:1:0\n"
    assert run(bootstrap, "get-offsets", "--topic", f"{topic}.*", "--partitions", "1") == both
    assert run(bootstrap, "get-offsets", "--topic-partitions", f"{topic}b?:1-") == both
    assert run(bootstrap, "get-offsets", f"{topic}b:1", f"{topic}:1") == both
    everything = run(bootstrap, "get-offsets", "--exclude-internal-topics")
    assert set(both.split()) < set(everything.split())
    assert "__" not in everything


def test_a_command_that_fails_says_why_in_one_line(bootstrap: str, topic: str) -> None:
    for (command, *words), reason in (
        (("topics", "--alter", f"{topic}-missing", "--partitions", "2"), "there is no topic"),
        (("topics", "--create", "not/a/name"), ""),
        (("get-offsets", topic, "--time", "soon"), "--time soon: latest"),
        (("consume", topic, "-X", "linger.ms=x"), "Invalid value for configuration property"),
    ):
        said = BrokerTool(command, bootstrap).refusal(*words)
        assert said.startswith(f"pykafkalog {command}: {reason}")


def test_each_kind_of_command_says_that_it_cannot_connect() -> None:
    for command, *words in (
        ("log-dirs",),
        ("consume", "t"),
        ("produce", "t"),
        ("perf", "produce", "t"),
    ):
        said = BrokerTool(command, "127.0.0.1:1").refusal(*words)
        assert said.startswith(f"pykafkalog {command}: cannot connect to 127.0.0.1:1")
