"""A `Log` in memory, for tests: built in one call, reopened as after a stop or a kill."""

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.record import Record, iter_records
from protocol.types import TopicPartition
from storage.append_origin import AppendOrigin
from storage.clock import Clock
from storage.log.log import Log
from storage.log.results import AppendInfo, FetchIsolation, FileSlice
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
DIRECTORY = "/logs/t-0"


class LogBuilder:
    """`log` is the log under test; `config` keyword arguments are TopicConfig's."""

    def __init__(self, **config: Any) -> None:
        self.fs = FaultyFileSystem()
        self.fs.make_dirs(DIRECTORY)
        self.clock = ManualClock()
        self.config = TopicConfig(**config)
        self.log = self.open()

    def open(
        self, *, clean: bool = True, recovery_point: int = 0, log_start_offset: int = 0
    ) -> Log:
        """Load the log from the file system."""
        options = LoadOptions(
            config=self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        self.log = load_log(self.fs, self.clock, DIRECTORY, TP, options, random.Random(0))
        return self.log

    def killed(self, **options: Any) -> Log:
        """Open the log after the process was killed: unsynced writes are kept."""
        self.fs = self.fs.crash(keep_unsynced=True)
        return self.open(clean=False, **options)

    def interrupted_starts(self, *operations: str) -> Iterator[tuple[str, int]]:
        """Start on the current disk, killed at the nth of each operation, then start again.

        Yields (operation, n) each time when the log is open again.
        """
        damaged = self.fs
        for operation in operations:
            for nth in itertools.count(1):
                self.fs = damaged.crash(keep_unsynced=True)
                rule = self.fs.fail(operation, "*", nth=nth)
                with suppress(OSError):
                    self.open(clean=False)
                if not rule.hits:
                    break
                self.killed()
                yield operation, nth

    def stopped(self) -> Log:
        """Close the log in order and open it."""
        at_once(self.log.flush())
        at_once(self.log.close())
        return self.open()

    def batch(self, count: int = 1, *, value: bytes = b"v", **fields: Any) -> bytearray:
        """Return a client's batch with the current time."""
        now = self.clock.wall_ms()
        return bytearray(build_batch([(now, b"k", value, ())] * count, **fields))

    def append(self, count: int = 1, *, value: bytes = b"v", **fields: Any) -> AppendInfo:
        """Append one batch as leader of epoch 0 and let the high watermark follow."""
        info = self.log.append_as_leader(self.batch(count, value=value, **fields), leader_epoch=0)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info

    def append_dated(self, *timestamps: int, **fields: Any) -> AppendInfo:
        """Append one batch with these timestamps."""
        records = [(stamp, b"k", b"v", ()) for stamp in timestamps]
        info = self.log.append_as_leader(build_batch(records, **fields), leader_epoch=0)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info

    def write(self, producer_id: int, sequence: int = 0, count: int = 1) -> AppendInfo:
        """Append one transactional batch of a producer in its epoch 0."""
        fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        return self.append(count, transactional=True, **fields)

    def end_transaction(
        self, producer_id: int, kind: ControlType = ControlType.ABORT, *, replicated: bool = True
    ) -> AppendInfo:
        """Append the marker of a producer in its epoch 0; the high watermark follows if asked."""
        return end_transaction(self.log, self.clock, producer_id, kind, replicated=replicated)

    def records(self, offset: int = 0) -> list[Record]:
        """Return all records from the batch that holds `offset` on."""
        found: list[Record] = []
        while True:
            info = self.log.read(offset, 1 << 20, FetchIsolation.LOG_END)
            if not info.records:
                return found
            data = info.records.read() if isinstance(info.records, FileSlice) else info.records
            for position, header in iter_batches(data):
                found += iter_records(data, position)
                offset = header.last_offset + 1

    def aborted(self, offset: int = 0) -> list[tuple[int, int, int]]:
        """Return (producer, first, last offset) of what a committed reader gets as aborted."""
        found = self.log.read(offset, 1 << 20, FetchIsolation.TXN_COMMITTED).aborted or ()
        return [(one.producer_id, one.first_offset, one.last_offset) for one in found]

    def names(self) -> list[str]:
        """Return the names of the files in the partition directory."""
        return self.fs.list_dir(DIRECTORY)


def end_transaction(
    log: Log,
    clock: Clock,
    producer_id: int,
    kind: ControlType = ControlType.ABORT,
    *,
    replicated: bool = True,
) -> AppendInfo:
    """Append the marker of a producer in its epoch 0, with the current time.

    The high watermark follows if `replicated`.
    """
    marker = build_end_transaction_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=clock.wall_ms(),
    )
    info = log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    if replicated:
        log.update_high_watermark(log.log_end_offset)
    return info
