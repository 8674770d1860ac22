"""Kafka's tool and `storage.reader` read what every client library wrote through one broker.

DumpLogSegments finds no fault in any file, and both list what was acknowledged (S-FMT-1): after a
clean stop, after kill -9, and after the recovery that follows it. After kill -9 the indexes of the
active segments still have their pre-sized length, which Kafka's sanity check calls corrupt in
Kafka's own directories, too, so those indexes are not checked then.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.reader import PartitionView
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import java
from tests.support.many_clients import CLIENTS, GROUP, Acked, Fed, feed

# Warnings of client libraries are not our failures.
pytestmark = [pytest.mark.conformance, pytest.mark.filterwarnings("ignore")]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "log.index.size.max.bytes": "65536",
}
COMPLETE = {4, 5}
"""States of a finished transaction in its coordinator's log."""
AFTER_A_KILL = ("killed", "recovered")
_RECORD = re.compile(
    r"\| offset: (\d+) .* headerKeys: \[[^]]*\](?: endTxnMarker: (\w+) coordinatorEpoch: \d+)?"
    r"(?: key: (\S+))?(?: payload: (.*))?"
)


@dataclass(frozen=True)
class Written:
    """A directory, the records that clients know of, and how the broker ended."""

    log_dir: Path
    fed: Fed
    was_killed: bool

    def partitions(self) -> list[Path]:
        return [self.log_dir / f"{client}-0" for client in CLIENTS]

    def files(self, *kinds: str, pattern: str | None = None) -> list[Path]:
        directories = self.partitions() if pattern is None else sorted(self.log_dir.glob(pattern))
        files = [
            file
            for directory in directories
            for file in sorted(directory.iterdir())
            if file.suffix in kinds
        ]
        if not self.was_killed:
            return files
        active = {max(directory.glob("*.log")) for directory in directories}
        return [file for file in files if file.with_suffix(".log") not in active or ".log" in kinds]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Written, Written]:
    """The directory as kill -9 left it (a copy), and after the next start and clean stop."""
    directory = tmp_path_factory.mktemp("killed")
    with BrokerProcess(directory, SETTINGS) as broker:
        fed = feed(broker.bootstrap)
        broker.kill()
        copy = shutil.copytree(broker.log_dir, directory / "copy")
        broker.start()
        broker.stop()
    return Written(copy, fed, was_killed=True), Written(broker.log_dir, fed, was_killed=False)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Written:
    with BrokerProcess(tmp_path_factory.mktemp("stopped"), SETTINGS) as broker:
        fed = feed(broker.bootstrap)
        broker.stop()
    return Written(broker.log_dir, fed, was_killed=False)


@pytest.fixture(
    params=["stopped", *(pytest.param(name, marks=pytest.mark.slow) for name in AFTER_A_KILL)]
)
def written(request: pytest.FixtureRequest) -> Written:
    if request.param == "stopped":
        return request.getfixturevalue("stopped")
    left, recovered = request.getfixturevalue("killed")
    return left if request.param == "killed" else recovered


def dump(files: list[Path], *options: str) -> list[str]:
    """Return the tool's lines, and check that it complains of nothing."""
    assert files
    result = java(DUMP, "--files", ",".join(map(str, files)), *options)
    errors = [
        line
        for line in result.stderr.splitlines()
        # It reports a gap for a segment that begins above offset 0, in Kafka's own files too.
        if not line.startswith("Non-consecutive offsets in") and "  -1 is followed by" not in line
    ]
    assert errors == []
    lines = result.stdout.splitlines()
    assert [line for line in lines if "isvalid: false" in line or line.startswith("Found ")] == []
    assert sum(line.startswith("Dumping ") for line in lines) == len(files)
    return lines


def rows_by_partition(lines: list[str]) -> dict[str, list[tuple[int, str | None, bytes, bytes]]]:
    """Return rows of (offset, marker, key, value) by partition."""
    found: dict[str, list[tuple[int, str | None, bytes, bytes]]] = {}
    partition = ""
    for line in lines:
        if line.startswith("Dumping "):
            partition = Path(line.removeprefix("Dumping ")).parent.name
        elif line.startswith("|"):
            match = _RECORD.fullmatch(line)
            assert match is not None, line
            offset, marker, key, value = match.groups()
            row = (int(offset), marker, (key or "").encode(), (value or "").encode())
            found.setdefault(partition, []).append(row)
    return found


def test_s_fmt_1_kafkas_tool_lists_what_was_acknowledged(written: Written) -> None:
    logs = written.files(".log")
    lines = dump(logs, "--deep-iteration", "--print-data-log")
    for partition, rows in rows_by_partition(lines).items():
        assert [row[0] for row in rows] == list(range(len(rows)))
        records: list[Acked] = [(at, key, value) for at, marker, key, value in rows if not marker]
        assert records == written.fed.records[partition]
        assert len(list((written.log_dir / partition).glob("*.log"))) >= 5
        markers = [marker for _, marker, _, _ in rows if marker]
        aborted = written.fed.aborted[partition]
        assert sorted(markers) == ["ABORT"] * aborted + ["COMMIT"] * aborted
    assert set(re.findall(r"compresscodec: (\w+)", "\n".join(lines))) == {
        *("none", "gzip", "snappy", "lz4", "zstd")
    }


def test_s_fmt_1_the_reader_lists_what_was_acknowledged(written: Written) -> None:
    for directory in written.partitions():
        expected = written.fed.records[directory.name]
        view = PartitionView(directory)
        marks = view.columns()["is_control"].tolist()
        rows = [(one.offset, one.key, one.value) for one in view.records()]
        assert [row for row, mark in zip(rows, marks, strict=True) if not mark] == expected
        columns: list[tuple[int, bytes | None, bytes | None]] = []
        for chunk in view.iter_columns():
            assert chunk.unreadable == []
            offsets = chunk.columns["offset"].tolist()
            columns += zip(offsets, chunk.keys(), chunk.values(), strict=True)
        assert columns == rows


def test_s_fmt_1_indexes_pass_both_checks(written: Written) -> None:
    indexes = written.files(".index", ".timeindex")
    assert len(indexes) >= 2 * 4 * len(CLIENTS)
    dump(indexes, "--verify-index-only")
    said = dump(indexes, "--index-sanity-check")
    for file in indexes:
        passed = f"{file} passed sanity check." in said
        assert passed or f"{file} is empty." in said
    for directory in written.partitions():
        segments = PartitionView(directory).segments()
        checked = segments[:-1] if written.was_killed else segments
        assert [problem for segment in checked for problem in segment.check_indexes()] == []


def test_s_fmt_1_aborted_transactions_and_producers(written: Written) -> None:
    everything = Written(written.log_dir, written.fed, was_killed=False)
    for directory in everything.partitions():
        aborts = written.fed.aborted[directory.name]
        indexes = sorted(directory.glob("*.txnindex"))
        lines = dump(indexes) if indexes else []
        assert sum(line.startswith("version: 0 producerId:") for line in lines) == aborts
        view = PartitionView(directory)
        assert sum(len(segment.aborted()) for segment in view.segments()) == aborts
        snapshots = sorted(directory.glob("*.snapshot"))
        lines = dump(snapshots)
        known = sum(line.startswith("producerId: ") for line in lines)
        assert known == sum(len(view.producers(offset)) for offset in view.snapshots())
        assert known > 0


def decoded(lines: list[str]) -> Iterator[tuple[dict[str, object], dict[str, object] | None]]:
    """Return key and value of each record, as text of a decoder."""
    for line in lines:
        match = _RECORD.fullmatch(line) if line.startswith("|") else None
        if match is not None and match[3] is not None:
            payload = match[4]
            yield json.loads(match[3]), None if payload == "<DELETE>" else json.loads(payload)


def test_s_fmt_1_committed_offsets_in_words(written: Written) -> None:
    logs = written.files(".log", pattern="__consumer_offsets-*")
    committed: dict[str, int] = {}
    for key, value in decoded(dump(logs, "--offsets-decoder")):
        data = key["data"]
        assert isinstance(data, dict)
        if key["type"] == "1" and data["group"] == GROUP:
            assert value is not None
            content = value["data"]
            assert isinstance(content, dict)
            committed[f"{data['topic']}-{data['partition']}"] = content["offset"]
    assert committed == written.fed.committed


def test_s_fmt_1_transactions_in_words(written: Written) -> None:
    logs = written.files(".log", pattern="__transaction_state-*")
    states: dict[str, int] = {}
    for key, value in decoded(dump(logs, "--transaction-log-decoder")):
        data, content = key["data"], (value or {}).get("data")
        assert isinstance(data, dict)
        assert isinstance(content, dict)
        states[data["transactionalId"]] = content["transactionStatus"]
    assert set(states) == written.fed.transactional_ids
    assert set(states.values()) <= COMPLETE
