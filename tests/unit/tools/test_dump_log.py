"""`pykafkalog dump-log`: lines of records, and the coordinators' records in words."""

import json
from pathlib import Path

import pytest

from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    encode_versioned,
)
from protocol.records.builder import build_batch
from tools.__main__ import main


def log_file(directory: Path, records: list[tuple[bytes | None, bytes | None]]) -> str:
    rows = [(1000 + number, key, value, ()) for number, (key, value) in enumerate(records)]
    path = directory / f"{0:020}.log"
    path.write_bytes(build_batch(rows))
    return str(path)


def dumped(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, object]]:
    assert main(["dump-log", "--json", *args]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_records_are_lines_as_in_kafkas_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log_file(tmp_path, [(b"k", b"v"), (None, b"w")])
    assert main(["dump-log", "--deep", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Log starting offset: 0"
    assert lines[2].startswith("baseOffset: 0 lastOffset: 1 count: 2 ")
    assert lines[3].startswith("| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 ")
    assert lines[3].endswith("key: k payload: v")
    assert lines[4].endswith("payload: w")


def test_commits_and_groups_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subscription = encode_versioned(
        ConsumerProtocolSubscription, 0, ConsumerProtocolSubscription(topics=["t"], user_data=None)
    )
    member = MemberMetadata(member_id="m-1", client_id="c", subscription=subscription)
    path = log_file(
        tmp_path,
        [
            (
                encode_versioned(OffsetCommitKey, 1, OffsetCommitKey(group="g", topic="t")),
                encode_versioned(
                    OffsetCommitValue, 3, OffsetCommitValue(offset=5, metadata="note")
                ),
            ),
            (
                encode_versioned(GroupMetadataKey, 2, GroupMetadataKey(group="g")),
                encode_versioned(
                    GroupMetadataValue,
                    3,
                    GroupMetadataValue(protocol_type="consumer", generation=4, members=[member]),
                ),
            ),
            (encode_versioned(GroupMetadataKey, 2, GroupMetadataKey(group="gone")), None),
        ],
    )
    rows = dumped(capsys, "--offsets-decoder", path)[-3:]
    key, value = json.loads(str(rows[0]["key"])), json.loads(str(rows[0]["payload"]))
    assert key == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 0}}
    assert (value["version"], value["data"]["offset"]) == ("3", 5)
    assert value["data"]["metadata"] == "note"
    group = json.loads(str(rows[1]["payload"]))["data"]
    assert group["generation"] == 4
    assert group["members"][0]["subscription"]["topics"] == ["t"]
    assert rows[2]["payload"] == "<DELETE>"


def test_transactions_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = encode_versioned(TransactionLogKey, 0, TransactionLogKey(transactional_id="pay"))
    value = encode_versioned(TransactionLogValue, 0, TransactionLogValue(producer_id=7))
    path = log_file(tmp_path, [(key, value), (b"\x00", b"nonsense")])
    rows = dumped(capsys, "--transaction-log-decoder", path)[-2:]
    assert json.loads(str(rows[0]["key"]))["data"] == {"transactionalId": "pay"}
    assert json.loads(str(rows[0]["payload"]))["data"]["producerId"] == 7
    assert str(rows[1]["key"]).startswith("Error at offset 1, skipping.")


def test_a_damaged_tail_is_told_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(log_file(tmp_path, [(b"k", b"v")]))
    path.write_bytes(path.read_bytes() + b"torn")
    assert main(["dump-log", str(path)]) == 1
    assert "4 invalid bytes" in capsys.readouterr().out
