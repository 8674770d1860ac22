"""Apache Kafka's own record classes read the batches we build, and accept those we accept."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from protocol.records.batch import (
    BATCH_OVERHEAD,
    iter_batches,
    read_header,
    set_max_timestamp,
    set_place,
    verify_crc,
)
from protocol.records.builder import NewRecord, assemble_batch, build_batch
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import InvalidRecord
from protocol.records.message_set import build_message_set
from protocol.records.record import Record, iter_records
from protocol.records.record_validation import RecordRules, check_batch
from tests.support.kafka_jars import java
from tests.support.message_sets import up_converted

pytestmark = pytest.mark.conformance

# Kafka's leader raises these for records it cannot read; clients get -1 for all but the first.
REFUSALS = (
    "InvalidRecordException",
    "KafkaException",
    "OutOfMemoryError",
    "BufferUnderflowException",
    "IllegalArgumentException",
)
SOURCE = Path(__file__).resolve().parents[1] / "golden" / "records" / "RecordsOracle.java"


def ask(question: str, batches: list[bytes]) -> list[Any]:
    """Return the oracle's answer for each batch."""
    asked = "".join(batch.hex() + "\n" for batch in batches)
    answers = java(str(SOURCE), question, stdin=asked).stdout
    return [json.loads(line) for line in answers.splitlines()]


def some_rows(seed: int, count: int) -> list[NewRecord]:
    rng = random.Random(seed)
    return [
        (
            1_700_000_000_000 + rng.randrange(-5000, 5000),
            rng.choice((None, b"", rng.randbytes(9))),
            rng.choice((None, b"", rng.randbytes(rng.choice((3, 100, 9000))))),
            [("n", rng.choice((None, b"", b"x")))] * rng.choice((0, 0, 3)),
        )
        for _ in range(count)
    ]


def test_kafka_reads_our_batches() -> None:
    batches = []
    for seed, codec in enumerate(CompressionType):
        for count in (1, 10, 90):
            rows = some_rows(seed, count)
            batches.append(build_batch(rows, base_offset=11, codec=codec, leader_epoch=2))
            if codec is not CompressionType.ZSTD:
                old = [(i + 5, row[0], row[1], row[2]) for i, row in enumerate(rows)]
                batches += [build_message_set(old, magic=m, codec=codec) for m in (0, 1)]
    for data, answer in zip(batches, ask("read", batches), strict=True):
        assert all(batch["valid"] for batch in answer)
        assert [
            (batch["base_offset"], batch["last_offset"], batch["max_timestamp"], batch["count"])
            for batch in answer
        ] == [
            (h.base_offset, h.last_offset, h.max_timestamp, h.record_count)
            for _, h in iter_batches(data)
        ]
        for batch, (pos, _) in zip(answer, iter_batches(data), strict=True):
            assert batch["records"] == [shown(record) for record in iter_records(data, pos)][:12]


def shown(record: Record) -> list[Any]:
    """Return a record as the oracle prints it."""

    def text(value: bytes | None) -> str | None:
        return None if value is None else value.hex()

    headers = [[name, text(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, text(record.key), text(record.value), headers]


def test_s_app_1_malformed_records_are_refused_by_both_or_neither() -> None:
    rng = random.Random(11)
    batches: list[bytes] = []
    for trial in range(600):
        rows = some_rows(trial, rng.choice((1, 3, 100)))[:100]
        payload = bytearray(build_batch(rows)[BATCH_OVERHEAD:])
        for _ in range(rng.choice((0, 1, 1, 2))):
            payload[rng.randrange(min(len(payload), 400))] = rng.choice(
                (0, 1, 2, 127, 128, 255, rng.randrange(256))
            )
        codec = rng.choice((CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4))
        count = len(rows) + rng.choice((0, 0, 0, 0, 0, 1))
        batches.append(
            assemble_batch(
                compress(codec, payload),
                base_offset=0,
                last_offset_delta=count - 1,
                record_count=count,
                base_timestamp=1_700_000_000_000,
                max_timestamp=1_700_000_000_000,
                attributes=int(codec),
            )
        )
    refused = 0
    for data, answer in zip(batches, ask("validate", batches), strict=True):
        header = read_header(data)
        try:
            found = check_batch(data, 0, header, RecordRules())
        except InvalidRecord as error:
            refused += 1
            if "offset delta" in str(error):
                # Kafka leaves wrong deltas of plain records as they are. For compressed ones it
                # means to rebuild the batch, but has skipped over what it would need.
                expected = "UnsupportedOperationException" if header.is_compressed else None
                assert answer.get("error") == expected, (answer, data.hex())
                continue
            # Kafka skips through compressed records without comparing fields with record lengths,
            # and so takes some that its consumers cannot read; we do not.
            assert header.is_compressed or answer.get("error") in REFUSALS, (answer, data.hex())
        else:
            assert "error" not in answer, (answer, data.hex())
            assert found.max_timestamp == answer["max_timestamp"]
    assert 100 < refused < 550


def test_patched_in_place_as_kafka_does_and_up_converted_to_the_same_bytes() -> None:
    rows = some_rows(5, 20)
    batch = build_batch(rows)
    sets = [
        build_message_set([(i, r[0], r[1], r[2]) for i, r in enumerate(rows)], magic=m)
        for m in (0, 1)
    ]
    answers = ask("validate", [batch, *sets])
    ours = bytearray(batch)
    header = read_header(ours)
    set_max_timestamp(ours, 0, header, header.timestamp_type, answers[0]["max_timestamp"])
    set_place(ours, header, 100, 4)
    assert verify_crc(ours, 0, header)
    assert ours.hex() == answers[0]["records"]
    for messages, answer in zip(sets, answers[1:], strict=True):
        converted = bytearray(up_converted(messages))
        set_place(converted, read_header(converted), 100, 4)
        assert converted.hex() == answer["records"]
