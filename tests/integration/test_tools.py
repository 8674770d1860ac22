"""The `pykafkalog` command line over the wire."""

import json
import time
from pathlib import Path

from tests.support.command_line import pykafkalog


def run(bootstrap: str, *args: str, stdin: str = "") -> str:
    command, *rest = args
    done = pykafkalog(command, "--bootstrap-server", bootstrap, *rest, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*words: str) -> str:
    """The one line that a command which does nothing says."""
    done = pykafkalog(*words)
    assert done.returncode == 1, words
    (line,) = done.stderr.splitlines()
    return line


def test_topics_are_created_listed_described_altered_and_deleted(
    bootstrap: str, topic: str
) -> None:
    out = run(
        bootstrap,
        "topics",
        "--create",
        topic,
        "--partitions",
        "2",
        "--config",
        "retention.ms=5000",
    )
    assert out == f"Created topic {topic}.\n"
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
    done = pykafkalog("topics", "-b", bootstrap, "--create", one, f"{topic}-4", two)
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
    for words, said in (
        (("topics", "--create"), "--create: which topic?"),
        (("topics", "--delete"), "--delete: which topic?"),
        (("topics", "--topic", one), "--topic goes with"),
        (("consume",), "which topic?"),
        (("produce", one, "-t", two), "lines go to one topic"),
    ):
        assert said in refusal(*words, "-b", bootstrap)


def test_lines_go_in_and_come_out_with_keys(bootstrap: str, topic: str, tmp_path: Path) -> None:
    run(bootstrap, "topics", "--create", topic, "--partitions", "1")
    lines = tmp_path / "lines.txt"
    lines.write_text("a:1\nb:2\n")
    run(
        bootstrap,
        "produce",
        topic,
        "--file",
        str(lines),
        "--key-separator",
        ":",
        "--compression",
        "zstd",
    )
    everything = (topic, "--from-beginning", "--exit")
    assert run(bootstrap, "consume", *everything, "--key-separator", ":") == "a:1\nb:2\n"
    first = json.loads(run(bootstrap, "consume", *everything, "--max", "1", "--json"))
    assert (first["offset"], first["key"], first["value"]) == (0, "a", "1")
    assert run(bootstrap, "get-offsets", topic) == f"{topic}:0:2\n"
    assert run(bootstrap, "get-offsets", topic, "--time", "earliest") == f"{topic}:0:0\n"


def test_offsets_at_kafkas_special_times(bootstrap: str, topic: str) -> None:
    run(bootstrap, "topics", "--create", topic, f"{topic}b", "--partitions", "2")
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


def test_configs_are_shown_and_changed(bootstrap: str, topic: str) -> None:
    run(bootstrap, "topics", "--create", topic)
    assert "retention.ms" not in run(bootstrap, "configs", "--topic", topic)
    assert "60000" in run(bootstrap, "configs", "--topic", topic, "--add", "retention.ms=60000")
    assert "segment.bytes" in run(bootstrap, "configs", "--topic", topic, "--all")
    assert "60000" not in run(bootstrap, "configs", "--topic", topic, "--delete", "retention.ms")


def test_groups_are_listed_described_reset_and_deleted(
    bootstrap: str, topic: str, group: str
) -> None:
    run(bootstrap, "topics", "--create", topic, "--partitions", "1")
    run(bootstrap, "produce", topic, stdin="one\ntwo\nthree\n")
    out = run(bootstrap, "consume", topic, "--group", group, "--from-beginning", "--max", "3")
    assert out.splitlines() == ["one", "two", "three"]
    assert group in run(bootstrap, "groups")
    run(bootstrap, "groups", "--reset", group, "--topic", topic, "--to", "1")
    described = run(bootstrap, "groups", "--describe", group)
    assert "empty" in described
    assert topic in described
    run(bootstrap, "groups", "--delete", group)
    assert group not in run(bootstrap, "groups")


def test_what_cannot_be_done_is_one_clear_line(bootstrap: str, topic: str) -> None:
    for arguments, reason in (
        (["topics", "--alter", f"{topic}-missing", "--partitions", "2"], "there is no topic"),
        (["groups", "--describe", "nobody"], "there is no group nobody"),
        (["configs", "--broker", "77"], "there is no broker 77; known: 1"),
        (["configs", "--broker", "1", "--add", "log.dirs=/x"], "Cannot update these configs"),
        (["produce", topic, "--file", "/no/such/file"], "cannot read /no/such/file: No such file"),
        (["get-offsets", topic, "--time", "soon"], "--time soon: latest"),
        (["groups", "-X", "frob=1"], "frob is no setting of a client"),
        (["consume", topic, "-X", "linger.ms=x"], "Invalid value for configuration property"),
        (["perf", "consume", topic, "-X", "frob=1"], "frob is no setting of a client"),
    ):
        assert refusal(*arguments, "-b", bootstrap).startswith(
            f"pykafkalog {arguments[0]}: {reason}"
        )
    told = refusal("consume", "-b", bootstrap, f"{topic}-missing", "--exit")
    assert told.startswith(f"pykafkalog consume: there is no topic {topic}-missing")
    told = refusal("topics", "-b", bootstrap, "--create", "not/a/name")
    assert told.startswith("pykafkalog topics: ")
