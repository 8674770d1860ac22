"""Loads partitions of a coordinator's topic into memory and says what may be served.

    NOT_LOADED --elect--> LOADING --log replayed--> ACTIVE
                             |                        | resign
                             +--unreadable--> FAILED  +------> NOT_LOADED

Rules

* A shard is what a partition's log says and nothing else: it is rebuilt by replaying the log from
  its start, through the very `replay` that a write uses (Kafka's `CoordinatorRuntime`).
* While a partition loads, requests for it are refused with COORDINATOR_LOAD_IN_PROGRESS (S-GRP-5);
  one that could not be read is refused with NOT_COORDINATOR until it is elected anew.
* Loading never holds the loop: bytes are read in slices, in a thread, and records are replayed a
  few at a time, compressed ones opened in chunks: whoever calls itself an admin client may write
  what it likes into these topics. Two partitions load at once, no more: it is CPU that they need.
* An empty partition is active at once. A partition that this broker leads without having been
  told (its topic was made a moment ago) is elected by the first request for it.

Generic over the shard; used by the coordinators of this package.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

import trio

from broker.coordinator.partition_writer import PartitionWriter
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, iter_batches, verify_crc
from protocol.records.control import ControlType, parse_control_type
from protocol.records.errors import RecordsError
from protocol.records.record import Record, iter_records
from protocol.types import TopicPartition
from storage.clock import Clock

logger = logging.getLogger(__name__)

RECORDS_PER_TURN = 200
"""Records read before the loop has its turn: about two milliseconds."""
LOADS_AT_ONCE = 2


class LoadState(Enum):
    """Where a partition stands."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class Replayer(Protocol):
    """A shard, as the loader sees it."""

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log that is no control record."""
        ...

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction."""
        ...

    def settle(self) -> Iterator[None]:
        """Replay what `load_record` only noted; yields whenever the loop may have its turn."""
        ...


S = TypeVar("S", bound=Replayer)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStatistics:
    """Numbers for metrics and tests."""

    partitions: dict[str, int]
    """How many are loading, active, failed."""
    loads: int
    load_time_max_ms: float
    load_time_total_ms: float
    loaded_records: int


class _Loaded(Generic[S]):
    __slots__ = ("epoch", "shard", "state")

    def __init__(self, shard: S, epoch: int) -> None:
        self.shard = shard
        self.epoch = epoch
        self.state = LoadState.LOADING


class CoordinatorRuntime(Generic[S]):
    """The partitions of one topic."""

    def __init__(
        self,
        topic: str,
        writer: PartitionWriter,
        clock: Clock,
        *,
        new_shard: Callable[[int], S],
        on_active: Callable[[int, S], None],
        slice_bytes: int,
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._clock = clock
        self._new_shard = new_shard
        self._on_active = on_active
        self._slice_bytes = slice_bytes
        self._loaded: dict[int, _Loaded[S]] = {}
        self._waiting: list[tuple[int, _Loaded[S]]] = []
        self._nursery: trio.Nursery | None = None
        self._limiter: trio.CapacityLimiter | None = None
        self._loads = 0
        self._load_ms_max = 0.0
        self._load_ms_total = 0.0
        self._records = 0

    # ---- what may be served

    def shard(self, partition: int) -> S:
        """The partition's state. Raises KafkaError with what a request is told."""
        loaded = self._loaded.get(partition)
        if loaded is None:
            epoch = self._writer.leader_epoch(TopicPartition(self._topic, partition))
            if epoch is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            self.elect(partition, epoch)
            loaded = self._loaded[partition]
        if loaded.state is LoadState.ACTIVE:
            return loaded.shard
        if loaded.state is LoadState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def epoch(self, partition: int) -> int:
        """The leader epoch in which a partition that is served was elected."""
        return self._loaded[partition].epoch

    def active(self) -> Iterator[tuple[int, S]]:
        """All partitions that are served."""
        for partition, loaded in list(self._loaded.items()):
            if loaded.state is LoadState.ACTIVE:
                yield partition, loaded.shard

    def is_current(self, partition: int, shard: S) -> bool:
        """Whether this very shard is still what the partition is served from."""
        loaded = self._loaded.get(partition)
        return loaded is not None and loaded.shard is shard

    def served(self, partition: int) -> S | None:
        """The partition's state if it is served at this moment."""
        loaded = self._loaded.get(partition)
        return loaded.shard if loaded is not None and loaded.state is LoadState.ACTIVE else None

    def is_loading_partition(self, partition: int) -> bool:
        """Whether this partition is being loaded."""
        loaded = self._loaded.get(partition)
        return loaded is not None and loaded.state is LoadState.LOADING

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return any(loaded.state is LoadState.LOADING for loaded in self._loaded.values())

    # ---- leadership

    def elect(self, partition: int, leader_epoch: int) -> S | None:
        """This broker leads the partition: load it. The shard that was replaced, if any."""
        current = self._loaded.get(partition)
        if (
            current is not None
            and current.epoch >= leader_epoch
            and current.state is not LoadState.FAILED
        ):
            return None
        loaded = _Loaded(self._new_shard(partition), leader_epoch)
        self._loaded[partition] = loaded
        tp = TopicPartition(self._topic, partition)
        try:
            start, end = self._writer.bounds(tp)
        except KafkaError as error:
            logger.warning("Cannot load %s: %s", tp, error)
            loaded.state = LoadState.FAILED
        else:
            if start >= end:
                self._activate(partition, loaded)
            elif self._nursery is None:
                self._waiting.append((partition, loaded))
            else:
                self._nursery.start_soon(self._load, partition, loaded)
        if current is None or current.state is not LoadState.ACTIVE:
            return None
        return current.shard

    def resign(self, partition: int) -> S | None:
        """Another broker leads it now, or it is gone: the shard that was served, if any."""
        loaded = self._loaded.pop(partition, None)
        if loaded is None or loaded.state is not LoadState.ACTIVE:
            return None
        return loaded.shard

    def resign_all(self) -> list[tuple[int, S]]:
        """The topic is gone, or the broker stops: what was served.

        A topic of the same name begins again with leader epoch 0; nothing must be left that would
        be taken for its state.
        """
        served = list(self.active())
        self._loaded.clear()
        self._waiting.clear()
        return served

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Load what is elected, until cancelled. Started once, by the server."""
        async with trio.open_nursery() as nursery:
            self._limiter = trio.CapacityLimiter(LOADS_AT_ONCE)
            self._nursery = nursery
            waiting, self._waiting = self._waiting, []
            for partition, loaded in waiting:
                nursery.start_soon(self._load, partition, loaded)
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    # ---- loading

    async def _load(self, partition: int, loaded: _Loaded[S]) -> None:
        assert self._limiter is not None
        async with self._limiter:
            tp = TopicPartition(self._topic, partition)
            started = self._clock.monotonic()
            try:
                with self._writer.uncompacted(tp):
                    records = await self._replay_log(tp, loaded)
            except (KafkaError, RecordsError, OSError) as error:
                logger.error("Loading %s failed: %s", tp, error)
                if self._loaded.get(partition) is loaded:
                    loaded.state = LoadState.FAILED
                return
            if self._loaded.get(partition) is not loaded:
                return  # Resigned or elected anew meanwhile.
            milliseconds = (self._clock.monotonic() - started) * 1000
            self._loads += 1
            self._load_ms_max = max(self._load_ms_max, milliseconds)
            self._load_ms_total += milliseconds
            self._records += records
            logger.info("Loaded %s: %d records in %.0f ms", tp, records, milliseconds)
            self._activate(partition, loaded)

    def _activate(self, partition: int, loaded: _Loaded[S]) -> None:
        loaded.state = LoadState.ACTIVE
        self._on_active(partition, loaded.shard)

    async def _replay_log(self, tp: TopicPartition, loaded: _Loaded[S]) -> int:
        """Replay everything up to what was the log's end; how many records."""
        offset, end = self._writer.bounds(tp)
        records = 0
        while offset < end and self._loaded.get(tp.partition) is loaded:
            data = await self._writer.read(tp, offset, self._slice_bytes)
            if not data:
                break  # Compaction took everything up to the end.
            before, damaged = offset, None
            for position, header in iter_batches(data):
                if header.next_offset <= offset:
                    continue  # The slice begins before what was asked for.
                if not verify_crc(data, position, header):
                    # What its records say may be anything; older values of their keys are better.
                    damaged = header.next_offset
                    logger.error("%s: left out a damaged batch at %d", tp, header.base_offset)
                    continue
                if header.is_control:
                    self._replay_marker(loaded.shard, header, data, position)
                else:
                    for record in iter_records(data, position, with_headers=False):
                        loaded.shard.load_record(header, record)
                        records += 1
                        if records % RECORDS_PER_TURN == 0:
                            await trio.lowlevel.checkpoint()
                offset = header.next_offset
            if offset == before and damaged is not None:
                offset = min(max(damaged, offset + 1), end)
            if offset == before:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{tp} cannot be read at {offset}")
        for _ in loaded.shard.settle():
            await trio.lowlevel.checkpoint()
        return records

    @staticmethod
    def _replay_marker(shard: S, header: BatchHeader, data: bytes, position: int) -> None:
        for record in iter_records(data, position):
            kind = parse_control_type(record.key)
            if kind in (ControlType.ABORT, ControlType.COMMIT):
                shard.load_marker(header.producer_id, commit=kind is ControlType.COMMIT)

    def statistics(self) -> LoadStatistics:
        """A snapshot."""
        states = {state.value: 0 for state in LoadState}
        for loaded in self._loaded.values():
            states[loaded.state.value] += 1
        return LoadStatistics(
            partitions=states,
            loads=self._loads,
            load_time_max_ms=self._load_ms_max,
            load_time_total_ms=self._load_ms_total,
            loaded_records=self._records,
        )
