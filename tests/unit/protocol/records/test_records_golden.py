"""Batches that Apache Kafka wrote (tests/golden/records): we read and write the same.

The files come from RecordsOracle.java (4.3) and DownConvertOracle.java (3.9) beside them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.records.batch import (
    DELETE_HORIZON_BIT,
    BatchHeader,
    TimestampType,
    iter_batches,
    verify_crc,
)
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import (
    ControlType,
    build_end_transaction_marker,
    parse_end_transaction_marker,
)
from protocol.records.down_conversion import down_convert
from protocol.records.message_set import build_message_set
from protocol.records.payload import payload_of
from protocol.records.record import Record, iter_records
from protocol.records.scan import fields_of

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "records"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))
# Other implementations of these codecs choose other, equally right, bytes.
OWN_BYTES = ("snappy", "zstd")


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def shown(record: Record) -> list[Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else value.hex()

    headers = [[name, text(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, text(record.key), text(record.value), headers]


def described(data: bytes, pos: int, header: BatchHeader) -> dict[str, Any]:
    has_delete_horizon = header.attributes & DELETE_HORIZON_BIT
    return {
        "valid": verify_crc(data, pos, header),
        "magic": header.magic,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "size": header.size,
        "codec": header.codec,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": header.timestamp_type,
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon": header.base_timestamp if has_delete_horizon else None,
        "count": header.record_count,
        "records": [shown(record) for record in iter_records(data, pos)][:12],
    }


def test_there_are_golden_batches() -> None:
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_s_fmt_2_kafkas_batches_read_as_kafka_reads_them(name: str) -> None:
    data = golden(f"{name}.bin")
    expected = json.loads(golden(f"{name}.json"))
    found = list(iter_batches(data))
    assert [described(data, pos, header) for pos, header in found] == expected
    for pos, header in found:
        if header.magic == 2:
            stamps = [record.timestamp for record in iter_records(data, pos)]
            if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
                stamps = []
            fields = fields_of(payload_of(data, pos, header), header)
            assert not stamps or fields.time_range() == (min(stamps), max(stamps))


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith("v2") and "append" not in n and "horizon" not in n]
)
def test_s_fmt_3_our_builder_writes_kafkas_bytes(name: str) -> None:
    data = golden(f"{name}.bin")
    ((_, header),) = iter_batches(data)
    built = build_batch(
        [(r.timestamp, r.key, r.value, r.headers) for r in iter_records(data)],
        base_offset=header.base_offset,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        leader_epoch=header.partition_leader_epoch,
    )
    if any(codec in name for codec in OWN_BYTES):
        assert list(iter_records(built)) == list(iter_records(data))
    else:
        assert built == data


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("v0", "v1"))])
def test_s_fmt_5_our_message_sets_are_kafkas_bytes(name: str) -> None:
    data = golden(f"{name}.bin")
    found = list(iter_batches(data))
    header = found[0][1]
    records = [record for pos, _ in found for record in iter_records(data, pos)]
    built = build_message_set(
        [(r.offset, r.timestamp, r.key, r.value) for r in records],
        magic=header.magic,
        codec=header.codec,
        timestamp_type=header.timestamp_type,
        log_append_time=header.max_timestamp,
    )
    if "snappy" in name:
        again = [record for pos, _ in iter_batches(built) for record in iter_records(built, pos)]
        assert again == records
    else:
        assert built == data


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith("v2") and "zstd" not in n and "large" not in n]
)
def test_down_conversion_gives_kafkas_bytes(name: str, magic: int) -> None:
    path = GOLDEN / f"{name}.down{magic}"
    expected = path.read_bytes() if path.exists() else b""
    converted = down_convert(golden(f"{name}.bin"), magic, first_offset=1002).records
    if "snappy" in name:
        assert [list(iter_records(converted, pos)) for pos, _ in iter_batches(converted)] == [
            list(iter_records(expected, pos)) for pos, _ in iter_batches(expected)
        ]
    else:
        assert converted == expected


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_end_transaction_markers_are_kafkas_bytes(kind: ControlType) -> None:
    data = golden(f"v2-marker-{kind.name.lower()}.bin")
    ((_, header),) = iter_batches(data)
    (record,) = iter_records(data)
    marker = parse_end_transaction_marker(record.key, record.value)
    assert (marker.control_type, marker.coordinator_epoch) == (kind, 12)
    assert marker.is_commit is (kind is ControlType.COMMIT)
    built = build_end_transaction_marker(
        kind,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        coordinator_epoch=12,
        timestamp=record.timestamp,
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
    )
    assert built == data


def test_log_append_time_batches_have_their_records_own_times_hidden() -> None:
    plain, dated = golden("v2-none-create.bin"), golden("v2-none-append.bin")
    rows = [(r.timestamp, r.key, r.value, r.headers) for r in iter_records(plain)]
    ((_, header),) = iter_batches(dated)
    built = build_batch(
        rows,
        base_offset=header.base_offset,
        codec=CompressionType.NONE,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=header.max_timestamp,
        leader_epoch=7,
    )
    assert built == dated
