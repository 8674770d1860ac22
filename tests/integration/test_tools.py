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
    ):
        assert refusal(*arguments, "-b", bootstrap).startswith(
            f"pykafkalog {arguments[0]}: {reason}"
        )
    told = refusal("consume", "-b", bootstrap, f"{topic}-missing", "--exit")
    assert told.startswith(f"pykafkalog consume: there is no topic {topic}-missing")
    told = refusal("topics", "-b", bootstrap, "--create", "not/a/name")
    assert told.startswith("pykafkalog topics: ")
