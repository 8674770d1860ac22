"""Reads the log of a partition into a new shard, through the same `replay` that a write uses.

Loading does not block the event loop: a thread reads the bytes in slices, and others may run after
each record; compressed records are decompressed in chunks, because an admin client may write any
batch into these topics. At most two partitions load at once: loading is bound by the CPU.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.shard import Shard
from broker.world.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, iter_batches, verify_crc
from protocol.records.control import ControlType, parse_control_type
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.waits import PAUSE, Lock

logger = logging.getLogger(__name__)

LOADS_AT_ONCE: Final = 2

S = TypeVar("S", bound=Shard[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStatistics:
    """Numbers for metrics and tests."""

    partitions: dict[str, int]
    """How many are loading, active and failed."""
    loads: int
    load_time_max_ms: float
    load_time_total_ms: float
    loaded_records: int


class CoordinatorLoader(Generic[S]):
    """Replays the logs of one topic into shards, in `tasks`."""

    def __init__(
        self,
        topic: str,
        writer: PartitionWriter,
        clock: Clock,
        tasks: Tasks,
        *,
        is_wanted: Callable[[S], bool],
        loaded: Callable[[S], None],
        failed: Callable[[S], None],
        slice_bytes: int,
    ) -> None:
        """`is_wanted`: whether the shard has been neither resigned nor replaced while it loads."""
        self._topic = topic
        self._writer = writer
        self._clock = clock
        self._tasks = tasks
        self._is_wanted = is_wanted
        self._loaded = loaded
        self._failed = failed
        self._slice_bytes = slice_bytes
        self._places = Lock(LOADS_AT_ONCE)
        self._loads = 0
        self._load_ms_max = 0.0
        self._load_ms_total = 0.0
        self._records = 0

    def load(self, shard: S) -> None:
        """Begin to load a new shard; calls `loaded` or `failed`, perhaps before it returns."""
        tp = TopicPartition(self._topic, shard.partition)
        try:
            start, end = self._writer.bounds(tp)
        except KafkaError as error:
            logger.warning("Cannot load %s: %s", tp, error)
            self._failed(shard)
            return
        if start >= end:
            self._loaded(shard)
        else:
            self._tasks.begin(partial(self._load, shard))

    async def _load(self, shard: S) -> None:
        async with self._places:
            tp = TopicPartition(self._topic, shard.partition)
            started = self._clock.monotonic()
            try:
                with self._writer.uncompacted(tp):
                    records = await self._replay_log(tp, shard)
            except (KafkaError, RecordsError, OSError) as error:
                logger.error("Loading %s failed: %s", tp, error)
                if self._is_wanted(shard):
                    self._failed(shard)
                return
            if not self._is_wanted(shard):
                return  # Resigned or elected again while it was loaded.
            milliseconds = (self._clock.monotonic() - started) * 1000
            self._loads += 1
            self._load_ms_max = max(self._load_ms_max, milliseconds)
            self._load_ms_total += milliseconds
            self._records += records
            logger.info("Loaded %s: %d records in %.0f ms", tp, records, milliseconds)
            self._loaded(shard)

    async def _replay_log(self, tp: TopicPartition, shard: S) -> int:
        """Replay the log up to its end as of now; return the number of records."""
        offset, end = self._writer.bounds(tp)
        records = 0
        while offset < end and self._is_wanted(shard):
            data = await self._writer.read(tp, offset, self._slice_bytes)
            if not data:
                break  # Compaction removed everything up to the end.
            before, damaged = offset, None
            for position, header in iter_batches(data):
                if header.next_offset <= offset:
                    continue  # The slice begins below the offset asked for.
                if not verify_crc(data, position, header):
                    # Do not trust its records: older values of their keys are better.
                    damaged = header.next_offset
                    logger.error("%s: left out a damaged batch at %d", tp, header.base_offset)
                    continue
                if header.is_control:
                    self._replay_marker(shard, header, data, position)
                else:
                    for record in iter_records(data, position, with_headers=False):
                        await shard.load_record(header, record)
                        records += 1
                        await PAUSE
                offset = header.next_offset
            if offset == before and damaged is not None:
                offset = min(max(damaged, offset + 1), end)
            if offset == before:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{tp} cannot be read at {offset}")
        await shard.settle()
        return records

    @staticmethod
    def _replay_marker(shard: S, header: BatchHeader, data: bytes, position: int) -> None:
        for record in iter_records(data, position):
            kind = parse_control_type(record.key)
            if kind in (ControlType.ABORT, ControlType.COMMIT):
                shard.load_marker(header.producer_id, commit=kind is ControlType.COMMIT)

    def statistics(self, partitions: dict[str, int]) -> LoadStatistics:
        """A snapshot; `partitions` by state."""
        return LoadStatistics(
            partitions=partitions,
            loads=self._loads,
            load_time_max_ms=self._load_ms_max,
            load_time_total_ms=self._load_ms_total,
            loaded_records=self._records,
        )
