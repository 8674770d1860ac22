"""`pykafkalog dump-log`: lines of records, and the coordinators' records in words."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from protocol.messages.versioned import encode_versioned
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import TopicPartition
from storage.os_filesystem import OsFileSystem
from tests.support.command_line import Command
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock


def log_file(directory: Path, records: list[tuple[bytes | None, bytes | None]]) -> str:
    rows = [(1000 + number, key, value, ()) for number, (key, value) in enumerate(records)]
    path = directory / f"{0:020}.log"
    path.write_bytes(build_batch(rows))
    return str(path)


def dumped(command: Command, *args: str) -> list[dict[str, object]]:
    printed = command("dump-log", "--json", *args)
    return [json.loads(line) for line in printed.out.splitlines()]


def test_records_are_lines_as_in_kafkas_tool(tmp_path: Path, command: Command) -> None:
    path = log_file(tmp_path, [(b"k", b"v"), (None, b"w")])
    lines = command("dump-log", "--deep", path).out.splitlines()
    assert lines[1] == "Log starting offset: 0"
    assert lines[2].startswith("baseOffset: 0 lastOffset: 1 count: 2 ")
    assert lines[3].startswith("| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 ")
    assert lines[3].endswith("key: k payload: v")
    assert lines[4].endswith("payload: w")


def versioned(value: Any, version: int) -> bytes:
    return encode_versioned(type(value), version, value)


def test_commits_and_groups_in_words(tmp_path: Path, command: Command) -> None:
    subscription = versioned(ConsumerProtocolSubscription(topics=["t"], user_data=None), 0)
    member = MemberMetadata(member_id="m-1", client_id="c", subscription=subscription)
    group = GroupMetadataValue(protocol_type="consumer", generation=4, members=[member])
    path = log_file(
        tmp_path,
        [
            (
                versioned(OffsetCommitKey(group="g", topic="t"), 1),
                versioned(OffsetCommitValue(offset=5, metadata="note"), 3),
            ),
            (versioned(GroupMetadataKey(group="g"), 2), versioned(group, 3)),
            (versioned(GroupMetadataKey(group="gone"), 2), None),
        ],
    )
    rows = dumped(command, "--offsets-decoder", path)[-3:]
    key, value = json.loads(str(rows[0]["key"])), json.loads(str(rows[0]["payload"]))
    assert key == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 0}}
    assert (value["version"], value["data"]["offset"]) == ("3", 5)
    assert value["data"]["metadata"] == "note"
    data = json.loads(str(rows[1]["payload"]))["data"]
    assert data["generation"] == 4
    assert data["members"][0]["subscription"]["topics"] == ["t"]
    assert rows[2]["payload"] == "<DELETE>"


def test_transactions_in_words(tmp_path: Path, command: Command) -> None:
    key = versioned(TransactionLogKey(transactional_id="pay"), 0)
    value = versioned(TransactionLogValue(producer_id=7), 0)
    path = log_file(tmp_path, [(key, value), (b"\x00", b"nonsense")])
    rows = dumped(command, "--transaction-log-decoder", path)[-2:]
    assert json.loads(str(rows[0]["key"]))["data"] == {"transactionalId": "pay"}
    assert json.loads(str(rows[0]["payload"]))["data"]["producerId"] == 7
    assert str(rows[1]["key"]).startswith("Error at offset 1, skipping.")


def test_a_damaged_tail_is_told_and_ends_with_1(tmp_path: Path, command: Command) -> None:
    path = Path(log_file(tmp_path, [(b"k", b"v")]))
    path.write_bytes(path.read_bytes() + b"torn")
    said = command("dump-log", path, code=1)
    assert f"Found 4 invalid bytes at the end of {path.name}" in said.out
    assert f"Not a whole number of batches in {path}" in said.err
    assert "position: 70: fewer bytes left than a batch header has" in said.err


def test_json_is_the_same_rows_and_the_problems(tmp_path: Path, command: Command) -> None:
    path = Path(log_file(tmp_path, [(b"k", b'\xff"v'), (None, "ü".encode())]))
    data = bytearray(path.read_bytes())
    data[17] ^= 1
    path.write_bytes(data)
    said = command("dump-log", "--json", "--deep", path, code=1)
    start, batch, first, second, problem = (json.loads(line) for line in said.out.splitlines())
    assert said.err == ""
    assert start == {"file": path.name, "logStartingOffset": 0}
    assert (batch["isvalid"], batch["deleteHorizonMs"], batch["compresscodec"]) == (
        False,
        None,
        "none",
    )
    assert (first["key"], first["payload"], first["headerKeys"]) == ("k", '\\xff"v', [])
    assert (second["key"], second["payload"]) == (None, "ü")
    assert (problem["problem"], problem["damaged"]) == ("CHECKSUM", True)


def test_max_bytes_stops_before_the_batch_that_does_not_fit(
    tmp_path: Path, command: Command
) -> None:
    path = Path(log_file(tmp_path, [(b"k", b"v")]))
    one = path.read_bytes()
    path.write_bytes(one + build_batch([(1, b"k", b"v", ())], base_offset=1))
    rows = dumped(command, "--max-bytes", str(2 * len(one) - 1), str(path))
    assert [row["baseOffset"] for row in rows[1:]] == [0]
    rows = dumped(command, "--max-bytes", str(2 * len(one)), str(path))
    assert [row["baseOffset"] for row in rows[1:]] == [0, 1]


def test_header_names_and_control_records(tmp_path: Path, command: Command) -> None:
    marker = build_end_transaction_marker(
        ControlType.ABORT,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=3,
        timestamp=5,
        base_offset=1,
    )
    headed = build_batch([(1, b"k", b"v", (("a", b"1"), ("b", None)))])
    (tmp_path / f"{0:020}.log").write_bytes(headed + marker)
    lines = command("dump-log", "--deep", tmp_path).out.splitlines()
    assert lines[3].endswith("headerKeys: [a,b] key: k payload: v")
    assert lines[5].endswith("headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 3")


def test_a_batch_that_cannot_be_opened_does_not_hide_the_others(
    tmp_path: Path, command: Command
) -> None:
    bad = bytearray(build_batch([(1, b"bad", b"v", ())], base_offset=1))
    bad[61] = 0x03
    pieces = [build_batch([(1, b"k%d" % at, b"v", ())], base_offset=at) for at in (0, 2)]
    (tmp_path / f"{0:020}.log").write_bytes(pieces[0] + bytes(bad) + pieces[1])
    said = command("dump-log", "--deep", tmp_path, code=1)
    assert [line.split("key: ")[1] for line in said.out.splitlines() if "key: " in line] == [
        "k0 payload: v",
        "k2 payload: v",
    ]
    assert "Batches whose records cannot be read in" in said.err


def test_small_files_of_a_log_directory(tmp_path: Path, command: Command) -> None:
    for name in ("recovery-point", "replication", "log-start", "cleaner"):
        (tmp_path / f"{name}-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=c\n")
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    rows = dumped(command, str(tmp_path))
    checkpoints = [row for row in rows if str(row["file"]).endswith("-checkpoint")]
    assert len(checkpoints) == 4
    assert all(
        (row["topic"], row["partition"], row["offset"]) == ("orders", 0, 5) for row in checkpoints
    )
    owner = next(row for row in rows if row["file"] == "meta.properties")
    assert (owner["version"], owner["nodeId"], owner["clusterId"]) == (1, 3, "c")


def test_damaged_small_files_name_the_line(tmp_path: Path, command: Command) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders zero 5\n")
    (tmp_path / "partition.metadata").write_text("version: 9\n")
    (tmp_path / "leader-epoch-checkpoint").write_text("x\n")
    (tmp_path / "quorum-state").write_text("{")
    (tmp_path / f"{5:020}.snapshot").write_bytes(b"no snapshot")
    said = command("dump-log", tmp_path, code=1).err
    assert "line 3: malformed line 'orders zero 5'" in said
    assert "line 1: unrecognised version '9', expected 0" in said
    assert said.count("Cannot be read: ") == 5


def test_errors_say_what_to_do(tmp_path: Path, command: Command) -> None:
    path = log_file(tmp_path, [(b"k", b"v")])
    (tmp_path / "empty").mkdir()
    for args, words in (
        ([], "which files?"),
        ([str(tmp_path / "none.log")], "does not exist"),
        ([str(tmp_path / "empty")], "Name a partition directory"),
        (["--value-decoder-class", "a.b.C", path], "--json --deep"),
        (["--offsets-decoder", "--transaction-log-decoder", path], "either"),
    ):
        assert words in command("dump-log", *args, code=1).err


def test_an_unknown_file_is_left_out_and_the_others_are_shown(
    tmp_path: Path, command: Command
) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    path = log_file(tmp_path, [(b"k", b"v")])
    said = command("dump-log", "--files", f"{tmp_path / 'letter.txt'},{path}", code=1)
    assert "Ignoring unknown file" in said.err
    assert "baseOffset: 0" in said.out


def test_an_index_without_its_log_is_shown_and_said(tmp_path: Path, command: Command) -> None:
    (tmp_path / f"{0:020}.index").write_bytes(bytes.fromhex("00000005 00000100"))
    said = command("dump-log", tmp_path, code=1)
    assert "offset: 5 position: 256" in said.out
    assert "there is no record file beside it" in said.err
    assert "passed sanity check." in command("dump-log", "--index-sanity-check", tmp_path).out


@pytest.mark.parametrize("option", ["--check", "--index-sanity-check", "--verify-index-only"])
@pytest.mark.parametrize("batches", [1, 300])
def test_a_log_in_use_has_no_problems(
    tmp_path: Path, command: Command, option: str, batches: int
) -> None:
    config = BrokerConfig.parse({"log.dirs": str(tmp_path / "logs")})
    manager = log_manager(config, ManualClock(), OsFileSystem())
    manager.startup(lambda _topic: TopicConfig())
    log = manager.get_or_create_log(TopicPartition("t", 0), bytes(range(16)), TopicConfig())
    for number in range(batches):
        log.append_as_leader(build_batch([(number, b"k", b"v" * 5000, ())]), leader_epoch=0)
    log.segments.active.indexes.time.resize(12_000)
    (copy := tmp_path / "copy").mkdir()
    shutil.copytree(tmp_path / "logs/t-0", copy / "t-0")
    command("dump-log", option, tmp_path / "logs/t-0")
    # No broker runs on the copy: an index that is longer than its entries was not closed.
    command("dump-log", option, copy / "t-0", code=(option != "--verify-index-only"))
    log_file = copy / "t-0" / f"{0:020}.log"
    log_file.write_bytes(log_file.read_bytes()[:-1])
    command("dump-log", log_file, code=1)
    log_file = tmp_path / "logs/t-0" / f"{0:020}.log"
    with log_file.open("ab") as file:
        file.write(b"half a batch")
    command("dump-log", log_file)


def test_a_batch_above_the_size_that_is_allowed(tmp_path: Path, command: Command) -> None:
    batches = [build_batch([(5, b"k", b"v" * 1000, ())], base_offset=n) for n in range(3)]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(batches))
    size = len(batches[0])
    index = tmp_path / f"{0:020}.index"
    index.write_bytes(struct.pack(">iiii", 1, size, 2, 2 * size))
    command("dump-log", "--max-message-size", size, index)
    said = command("dump-log", "--max-message-size", str(size - 1), index, code=1).err
    assert f"offset: 1 position: {size}: the batch there, of {size} bytes, is larger" in said
    assert f"offset: 2 position: {2 * size}" in said
