"""Apache Kafka's own tool reads the files that a `Log` writes (S-FMT-1)."""

import random
from pathlib import Path
from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.log.results import AppendOrigin
from storage.os_filesystem import OsFileSystem
from storage.reader import PartitionView
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.kafka_jars import java
from tests.support.manual_clock import ManualClock

pytestmark = pytest.mark.conformance

TP = TopicPartition("written.here", 0)
COMPLAINTS = ("Mismatch", "mismatch", "Non-consecutive", "Non-secutive", "Found", "isvalid: false")


def write_log(directory: Path, *, clean: bool) -> Log:
    """Write four segments: every codec, several epochs, an idempotent producer, both markers."""
    directory.mkdir()
    clock = ManualClock()
    options = LoadOptions(
        config=TopicConfig(segment_bytes=20_000, index_interval_bytes=1000), clean=True
    )
    log = load_log(OsFileSystem(), clock, str(directory), TP, options, Random(1))
    rng = random.Random(5)
    sequence = transactional = 0
    for at in range(60):
        clock.advance(1.5)
        records = [
            (clock.wall_ms() - rng.randrange(1000), b"k%d" % at, rng.randbytes(150), [("h", b"v")])
            for _ in range(1 + at % 9)
        ]
        batch = build_batch(
            records,
            codec=CompressionType(at % 5),
            producer_id=44,
            producer_epoch=1,
            base_sequence=sequence,
        )
        sequence += len(records)
        log.append_as_leader(batch, leader_epoch=at // 25)
        if at % 20 == 10:
            transaction = build_batch(
                records,
                producer_id=45,
                producer_epoch=0,
                base_sequence=transactional,
                transactional=True,
            )
            log.append_as_leader(transaction, leader_epoch=at // 25)
            transactional += len(records)
        if at % 20 == 15:
            marker = build_end_transaction_marker(
                ControlType.COMMIT if at == 35 else ControlType.ABORT,
                producer_id=45,
                producer_epoch=0,
                coordinator_epoch=3,
                timestamp=clock.wall_ms(),
            )
            log.append_as_leader(marker, leader_epoch=at // 25, origin=AppendOrigin.COORDINATOR)
        log.update_high_watermark(log.log_end_offset)
    assert len(log.segments) >= 3
    log._check()
    if clean:
        at_once(log.flush())
        at_once(log.close())
    return log


def test_s_fmt_1_dump_log_segments_reads_every_file_without_complaint(tmp_path: Path) -> None:
    directory = tmp_path / str(TP)
    log = write_log(directory, clean=True)
    main = "org.apache.kafka.tools.DumpLogSegments"
    files = [str(path) for path in sorted(directory.iterdir())]
    logs = [name for name in files if name.endswith(".log")]
    others = [
        name for name in files if name.endswith((".index", ".timeindex", ".txnindex", ".snapshot"))
    ]
    assert {Path(name).suffix for name in others} == {
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
    }
    deep = java(main, "--deep-iteration", "--print-data-log", "--files", ",".join(logs)).stdout
    lines = deep.splitlines()
    assert not [line for line in lines if any(word in line for word in COMPLAINTS)]
    records = [line for line in lines if line.startswith("| offset:")]
    assert len(records) == log.log_end_offset
    batches = [line for line in lines if line.startswith("baseOffset:")]
    view = PartitionView(directory)
    ours = [batch for segment in view.segments() for batch in segment.batches()]
    assert len(ours) == len(batches)
    for line, batch in zip(batches, ours, strict=True):
        assert f"baseOffset: {batch.header.base_offset} " in line
        assert f"crc: {batch.header.crc} " in line
        assert line.endswith("isvalid: true")

    plain = java(main, "--files", ",".join(others)).stdout
    assert not [line for line in plain.splitlines() if any(word in line for word in COMPLAINTS)]
    assert sum(line.startswith("version: 0 producerId: 45") for line in plain.splitlines()) == 2
    for option in ("--index-sanity-check", "--verify-index-only"):
        indexes = [name for name in others if name.endswith("index")]
        checked = java(main, option, "--files", ",".join(indexes)).stdout
        assert not [
            line for line in checked.splitlines() if any(word in line for word in COMPLAINTS)
        ]
        if option == "--index-sanity-check":
            assert checked.count("passed sanity check.") == 2 * len(logs)
    assert view.segments()[0].check_indexes() == []


def test_s_fmt_1_indexes_rebuilt_after_a_kill_are_as_good(tmp_path: Path) -> None:
    directory = tmp_path / str(TP)
    write_log(directory, clean=False)
    options = LoadOptions(config=TopicConfig(index_interval_bytes=1000), clean=False)
    log = load_log(OsFileSystem(), ManualClock(), str(directory), TP, options, Random(1))
    log._check()
    at_once(log.close())
    indexes = [str(path) for path in sorted(directory.iterdir()) if path.suffix.endswith("index")]
    main = "org.apache.kafka.tools.DumpLogSegments"
    checked = java(main, "--files", ",".join(indexes)).stdout
    assert not [line for line in checked.splitlines() if any(word in line for word in COMPLAINTS)]
