"""Histories of compacted logs for differential tests: the batches of a log, and its cleanings.

    history = CompactionHistory(seed)
    writer = HistoryWriter(history, directory)
    for turn in history.turns():
        writer.extend(turn)
        ...  # clean the directory as `turn` says

A seed draws a `Shape` (few or many keys, codecs, producers, formats …), and that the batches. The
real storage engine appends them as a follower, so that offsets may have gaps and producers any
epoch; it rolls, indexes and keeps producer state.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from config.topic_config import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.header import TimestampType
from protocol.records.message_set import build_message_set
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.os_filesystem import OsFileSystem
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.manual_clock import ManualClock

TP = TopicPartition("compacted", 0)
BEGIN_MS = 1_700_000_000_000
DAY_MS = 86_400_000
_MOST_SEQUENCE = 2**31 - 1
_OLD_CODECS = (
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The parameters of a history. Shares are probabilities."""

    keys: int
    codecs: tuple[CompressionType, ...]
    batch_most: int
    value_most: int
    tombstones: float
    keyless: float
    headers: float
    log_append_time: float
    dates: str
    """`forward`, `equal`, `backward` or `random`."""
    producers: int
    transactions: float
    """Share of the producers' batches that are transactional."""
    legacy: float
    gaps: float
    rolls: float
    first_offset: int

    @classmethod
    def drawn(cls, rng: Random) -> "Shape":
        """Draw a shape; half of them are uncompressed, so that files can be compared as bytes."""
        codecs = tuple(CompressionType)
        return cls(
            keys=rng.choice((1, 3, 10, 50, 400)),
            codecs=rng.choice(
                ((CompressionType.NONE,), (CompressionType.NONE,), codecs, (rng.choice(codecs),))
            ),
            batch_most=rng.choice((1, 5, 50)),
            value_most=rng.choice((0, 20, 200, 3000)),
            tombstones=rng.choice((0, 0.1, 0.3, 0.9)),
            keyless=rng.choice((0, 0, 0, 0.05, 0.5)),
            headers=rng.choice((0, 0.2)),
            log_append_time=rng.choice((0, 0, 0.3, 1)),
            dates=rng.choice(("forward", "equal", "backward", "random")),
            producers=rng.choice((0, 1, 3, 8)),
            transactions=rng.choice((0, 0.3, 0.9)),
            legacy=rng.choice((0, 0, 0, 0.3)),
            gaps=rng.choice((0, 0, 0.1)),
            rolls=rng.choice((0, 0.05, 0.3)),
            first_offset=rng.choice((0, 0, 0, 5, 2**31 - 100, 2**40)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Batches to write, and the cleaning that follows."""

    number: int
    batches: int
    now_ms: int
    map_slots: int
    io_buffer_bytes: int
    begin_anew: bool
    """Clean from the start of the log instead of from the end of the last cleaning."""
    deleted: float
    """DeleteRecords: the share of the log that is below the log start."""
    exact_group: int
    """Set `segment.bytes` to the exact size of this many segments; 0 leaves it."""
    next_from_kafka: bool
    """Whether the next turn takes the directory that Kafka cleaned, not ours."""


class CompactionHistory:
    """The history of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = Random(seed)
        self.shape = Shape.drawn(rng)
        segment_bytes = rng.choice((700, 3000, 20_000))
        self.config = TopicConfig(
            cleanup_policy=frozenset({"compact"}),
            segment_bytes=segment_bytes,
            index_interval_bytes=rng.choice((0, 200, 4096)),
            segment_index_bytes=rng.choice((60, 1200, 10_485_760)),
            delete_retention_ms=rng.choice((0, 1000, 60_000, DAY_MS)),
            max_message_bytes=rng.choice((100, 1_048_588)),
        )
        self.io_buffers = rng.choice(((512 * 1024,), (100, 1000, 512 * 1024)))
        self.map_slots = rng.choice(((10_000,), (10_000,), (2, 5, 20, 100)))

    def turns(self) -> Iterator[Turn]:
        """Yield two to five turns."""
        rng = self.rng
        now = BEGIN_MS
        for number in range(rng.randint(2, 5)):
            retention = self.config.delete_retention_ms
            now += rng.choice((0, 1, 1000, retention // 2, retention, retention + 1, 3 * DAY_MS))
            batches = rng.choice((0, 5, 30, 80)) if number else rng.choice((5, 30, 80))
            yield Turn(
                number=number,
                batches=batches,
                now_ms=now,
                map_slots=rng.choice(self.map_slots),
                io_buffer_bytes=rng.choice(self.io_buffers),
                begin_anew=not batches or rng.random() < 0.15,
                # Kafka's cleaner forgets transactions that were aborted below the log start.
                deleted=rng.choice((0, 0, 0, 0.3, 0.7)) * (not self.shape.transactions),
                exact_group=rng.choice((0, 0, 2, 3)),
                next_from_kafka=rng.random() < 0.5,
            )

    def load(self, directory: Path, now_ms: int, *, log_start_offset: int = 0) -> Log:
        """Load the log in a directory, all of it replicated."""
        options = LoadOptions(config=self.config, clean=True, log_start_offset=log_start_offset)
        log = load_log(
            OsFileSystem(), ManualClock(now_ms), str(directory), TP, options, Random(self.seed)
        )
        log.update_high_watermark(log.log_end_offset)
        return log

    def __repr__(self) -> str:
        own = (
            "segment_bytes",
            "segment_index_bytes",
            "index_interval_bytes",
            "delete_retention_ms",
            "max_message_bytes",
        )
        settings = {name: getattr(self.config, name) for name in own}
        return f"seed {self.seed}: {self.shape} {settings}"


def _dated(turn: Turn, *, by_log: bool) -> dict[str, Any]:
    """Return the arguments of a batch for its kind of timestamps."""
    if by_log:
        return {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": turn.now_ms}
    return {"timestamp_type": TimestampType.CREATE_TIME, "log_append_time": None}


@dataclass(slots=True)
class _Producer:
    id: int
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False
    coordinator_epoch: int = 0


@dataclass(slots=True)
class HistoryWriter:
    """Writes the batches of a history, turn by turn; knows the producers and the time."""

    history: CompactionHistory
    producers: list[_Producer] = field(default_factory=list)
    leader_epoch: int = 0
    _ticks: int = 0

    def __post_init__(self) -> None:
        rng = self.history.rng
        self.producers = [
            # Some are close to the wrap-around of sequence numbers.
            _Producer(100 + number, sequence=rng.choice((0, 0, _MOST_SEQUENCE - 60)))
            for number in range(self.history.shape.producers)
        ]

    def extend(self, directory: Path, turn: Turn) -> None:
        """Append the turn's batches to the log in the directory."""
        log = self.history.load(directory, turn.now_ms)
        written_from = log.segments.active.base_offset
        try:
            if log.log_end_offset == 0 and self.history.shape.first_offset:
                log.truncate_fully_and_start_at(self.history.shape.first_offset)
            for _ in range(turn.batches):
                self._step(log, turn)
            log.update_high_watermark(log.log_end_offset)
            # The first read of a transaction index drops entries whose data is gone.
            log.reader.packed_aborted(log.log_end_offset)
            log._check()
        finally:
            at_once(log.flush())
            at_once(log.close())
        self._date_files(directory, written_from, turn.now_ms)

    def _date_files(self, directory: Path, written_from: int, now_ms: int) -> None:
        """Set the files' times by the history's clock: tombstones of old formats depend on them."""
        rng = self.history.rng
        ages = (0, 0, self.history.config.delete_retention_ms)
        for path in sorted(directory.glob("*.log")):
            if int(path.stem) >= written_from:
                dated = (now_ms - rng.choice(ages)) * 1_000_000
                os.utime(path, ns=(dated, dated))

    def _step(self, log: Log, turn: Turn) -> None:
        rng, shape = self.history.rng, self.history.shape
        at = log.log_end_offset
        if rng.random() < shape.gaps:
            at += rng.choice((1, 7, 500, 2**30))
        if rng.random() < shape.rolls and log.segments.active.size:
            log.roll()
        if rng.random() < 0.03:
            self.leader_epoch += 1
        log.appender.append_as_follower(self._batch(at, turn))

    def _batch(self, at: int, turn: Turn) -> bytes:
        rng, shape = self.history.rng, self.history.shape
        if rng.random() < shape.legacy:
            return self._message_set(at, turn)
        records = self._records(turn, rng.randint(1, shape.batch_most))
        log_dated = rng.random() < shape.log_append_time
        fields: dict[str, Any] = {
            "base_offset": at,
            "codec": rng.choice(shape.codecs),
            "leader_epoch": self.leader_epoch,
            **_dated(turn, by_log=log_dated),
        }
        if not self.producers or rng.random() < 0.2:
            return build_batch(records, **fields)
        producer = rng.choice(self.producers)
        if producer.is_open and rng.random() < 0.4:
            return self._end(producer, at, turn)
        if not producer.is_open:
            if rng.random() < 0.1:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
            if rng.random() < shape.transactions:
                if rng.random() < 0.1:  # nothing was written in this one, here
                    return self._end(producer, at, turn)
                producer.is_open = True
        sequence = producer.sequence
        producer.sequence = (sequence + len(records)) & _MOST_SEQUENCE
        return build_batch(
            records,
            **fields,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=producer.is_open,
        )

    def _end(self, producer: _Producer, at: int, turn: Turn) -> bytes:
        rng = self.history.rng
        producer.is_open = False
        if rng.random() < 0.2:  # as since KIP-890, a new epoch for each transaction
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        producer.coordinator_epoch += rng.random() < 0.1
        return build_end_transaction_marker(
            rng.choice((ControlType.ABORT, ControlType.COMMIT)),
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            coordinator_epoch=producer.coordinator_epoch,
            timestamp=self._date(turn),
            base_offset=at,
            leader_epoch=self.leader_epoch,
        )

    def _message_set(self, at: int, turn: Turn) -> bytes:
        rng, shape = self.history.rng, self.history.shape
        magic = rng.choice((0, 1))
        codec = rng.choice([one for one in _OLD_CODECS if one in shape.codecs] or _OLD_CODECS)
        log_dated = magic == 1 and rng.random() < shape.log_append_time
        rows = self._records(turn, rng.randint(1, min(10, shape.batch_most)))
        return build_message_set(
            [(at + i, -1 if magic == 0 else row[0], row[1], row[2]) for i, row in enumerate(rows)],
            magic=magic,
            codec=codec,
            **_dated(turn, by_log=log_dated),
        )

    def _records(self, turn: Turn, count: int) -> list[NewRecord]:
        """Draw up to `count` records; the batch must fit into a segment."""
        records: list[NewRecord] = []
        room = self.history.config.segment_bytes - 250
        for _ in range(count):
            record = self._record(turn)
            room -= len(record[2] or b"") + 60
            if records and room < 0:
                break
            records.append(record if room >= 0 else (*record[:2], b"", record[3]))
        return records

    def _record(self, turn: Turn) -> NewRecord:
        rng, shape = self.history.rng, self.history.shape
        key = None if rng.random() < shape.keyless else self._key()
        value = None
        if rng.random() >= shape.tombstones:
            value = rng.randbytes(rng.randint(0, shape.value_most) // 2).hex().encode()
        headers: list[tuple[str, bytes | None]] = []
        if rng.random() < shape.headers:
            headers = [("h", rng.randbytes(3)), ("é", None)][: rng.randint(1, 2)]
        return self._date(turn), key, value, headers

    def _key(self) -> bytes:
        rng = self.history.rng
        # Low numbers are more frequent.
        number = min(rng.randrange(self.history.shape.keys), rng.randrange(self.history.shape.keys))
        return b"" if number == 2 else b"key-%d" % number

    def _date(self, turn: Turn) -> int:
        rng = self.history.rng
        self._ticks += 1
        if rng.random() < 0.002:
            return -1
        return {
            "forward": turn.now_ms - 10_000 + self._ticks,
            "equal": BEGIN_MS,
            "backward": turn.now_ms - self._ticks,
            "random": turn.now_ms - rng.randrange(2 * DAY_MS),
        }[self.history.shape.dates]
