"""Logs that are opened as a stop, a kill or a power cut left them."""

from typing import Any

from storage.log.log import Log
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder


def path(base: int, kind: str = "log") -> str:
    return f"{DIRECTORY}/{base:020d}.{kind}"


def filled(**config: object) -> LogBuilder:
    """Three segments of four batches of two records."""
    built = LogBuilder(index_interval_bytes=0, **config)
    for at in range(12):
        if at in (4, 8):
            built.log.roll()
        built.append(2, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    return built


def offsets(built: LogBuilder) -> list[int]:
    return [record.offset for record in built.records()]


def tail(**config: Any) -> tuple[LogBuilder, int]:
    """One segment of 40 batches, all indexed, and where the batch at offset 60 begins."""
    built = LogBuilder(index_interval_bytes=0, **config)
    for at in range(40):
        built.clock.advance(0.001)
        built.append(2, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    at_once(built.log.flush())
    found = built.log.segments.first.find(60)
    assert found is not None
    return built, found.position


def flip(built: LogBuilder, position: int) -> None:
    file = built.fs.open(path(0))
    byte = file.pread(1, position)[0]
    file.pwrite(bytes([byte ^ 1]), position)


def state_of(log: Log) -> object:
    segment = log.segments.first
    entry = log.producers.entry(7)
    assert entry is not None
    return (
        [segment.indexes.offset.entry(at) for at in range(segment.indexes.offset.entries)],
        [segment.indexes.time.entry(at) for at in range(segment.indexes.time.entries)],
        [(txn.producer_id, txn.last_offset) for txn in segment.aborted.index.all_aborted()],
        (segment.max_timestamp, segment.offset_of_max_timestamp),
        (entry.last_sequence, entry.batches[-1]),  # a snapshot holds the last one only
        log.leader_epochs.entries,
        (log.log_end_offset, log.size),
    )
