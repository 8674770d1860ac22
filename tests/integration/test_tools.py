"""The `pykafkalog` command line over the wire."""

import io
import json
import sys
import time
from pathlib import Path

import pytest

from tools.__main__ import main


def run(capsys: pytest.CaptureFixture[str], bootstrap: str, *args: str) -> str:
    command, *rest = args
    assert main([command, "--bootstrap-server", bootstrap, *rest]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_topics_are_created_listed_described_altered_and_deleted(
    bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(
        capsys,
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
    assert topic in run(capsys, bootstrap, "topics").splitlines()
    assert "retention.ms=5000" in run(capsys, bootstrap, "topics", "--describe", topic)
    run(capsys, bootstrap, "topics", "--alter", topic, "--partitions", "3")
    deadline = time.monotonic() + 10  # Apache Kafka's brokers learn of it a little later
    while "3 partitions" not in run(capsys, bootstrap, "topics", "--describe", topic):
        assert time.monotonic() < deadline
    run(capsys, bootstrap, "topics", "--delete", topic)
    assert topic not in run(capsys, bootstrap, "topics").splitlines()


def test_lines_go_in_and_come_out_with_keys(
    bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capsys, bootstrap, "topics", "--create", topic, "--partitions", "1")
    lines = tmp_path / "lines.txt"
    lines.write_text("a:1\nb:2\n")
    run(
        capsys,
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
    assert run(capsys, bootstrap, "consume", *everything, "--key-separator", ":") == "a:1\nb:2\n"
    first = json.loads(run(capsys, bootstrap, "consume", *everything, "--max", "1", "--json"))
    assert (first["offset"], first["key"], first["value"]) == (0, "a", "1")
    assert run(capsys, bootstrap, "get-offsets", topic) == f"{topic}:0:2\n"
    assert run(capsys, bootstrap, "get-offsets", topic, "--time", "earliest") == f"{topic}:0:0\n"


def test_configs_are_shown_and_changed(
    bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, bootstrap, "topics", "--create", topic)
    assert "retention.ms" not in run(capsys, bootstrap, "configs", "--topic", topic)
    assert "60000" in run(
        capsys, bootstrap, "configs", "--topic", topic, "--add", "retention.ms=60000"
    )
    assert "segment.bytes" in run(capsys, bootstrap, "configs", "--topic", topic, "--all")
    assert "60000" not in run(
        capsys, bootstrap, "configs", "--topic", topic, "--delete", "retention.ms"
    )


def test_groups_are_listed_described_reset_and_deleted(
    bootstrap: str,
    topic: str,
    group: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(capsys, bootstrap, "topics", "--create", topic, "--partitions", "1")
    stdin = io.TextIOWrapper(io.BytesIO(b"one\ntwo\nthree\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    run(capsys, bootstrap, "produce", topic)
    out = run(
        capsys, bootstrap, "consume", topic, "--group", group, "--from-beginning", "--max", "3"
    )
    assert out.splitlines() == ["one", "two", "three"]
    assert group in run(capsys, bootstrap, "groups")
    run(capsys, bootstrap, "groups", "--reset", group, "--topic", topic, "--to", "1")
    described = run(capsys, bootstrap, "groups", "--describe", group)
    assert "empty" in described
    assert topic in described
    run(capsys, bootstrap, "groups", "--delete", group)
    assert group not in run(capsys, bootstrap, "groups")


def test_what_cannot_be_done_is_one_clear_line(
    bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, reason in (
        (["topics", "--alter", f"{topic}-missing", "--partitions", "2"], "there is no topic"),
        (["groups", "--describe", "nobody"], "there is no group nobody"),
        (["configs", "--broker", "77"], "there is no broker 77; known: 1"),
        (["configs", "--broker", "1", "--add", "log.dirs=/x"], "Cannot update these configs"),
        (["produce", topic, "--file", "/no/such/file"], "cannot read /no/such/file: No such file"),
        (["get-offsets", topic, "--time", "soon"], "--time soon: latest"),
    ):
        assert main([*arguments, "-b", bootstrap]) == 1, arguments
        told = capsys.readouterr().err
        assert told.startswith(f"pykafkalog {arguments[0]}: {reason}")
        assert told.count("\n") == 1
    assert main(["consume", "-b", bootstrap, f"{topic}-missing", "--exit"]) == 1
    assert capsys.readouterr().err == f"pykafkalog consume: there is no topic {topic}-missing\n"
    assert main(["topics", "-b", bootstrap, "--create", "not/a/name"]) == 1
    assert capsys.readouterr().err.startswith("pykafkalog topics: ")
