"""The only way in which coordinators write; the docstring of the package lists its steps.

A write that ends after its shard was resigned, or its topic deleted, is not replayed, and its
request is answered NOT_COORDINATOR: the next coordinator finds the records in the log.

Synchronous. If this broker is alone in the ISR, a whole write happens within `carry_out`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.decision import Decision, Timer, Write
from broker.coordinator.runtime.hooks import CoordinatorHooks
from broker.coordinator.runtime.shard import Shard
from broker.coordinator.runtime.timers import Timers
from broker.coordinator.write_codes import response_code
from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.errors import RecordsError
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.waits import Signal, fired

TOMBSTONES_PER_BATCH: Final = 1_000
"""Keeps a batch of tombstones far below max.message.bytes, however long the names are."""

_NOTHING_WRITTEN: Final = fired(ErrorCode.NONE)

S = TypeVar("S", bound=Shard[Any])
D = TypeVar("D", bound=Decision[Any])


class ShardWriter(Generic[S, D]):
    """Carries out what the shards of one topic decide."""

    def __init__(
        self,
        topic: str,
        writer: PartitionWriter,
        clock: Clock,
        timers: Timers,
        hooks: CoordinatorHooks[S, D],
        is_current: Callable[[S], bool],
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._clock = clock
        self._timers = timers
        self._new_decision = hooks.new_decision
        self._encode = hooks.encode
        self._on_settled = hooks.on_settled
        self._compression = hooks.compression
        self._is_current = is_current

    def carry_out(self, shard: S, decision: D) -> Signal[ErrorCode]:
        """Set timers and give answers now; do the rest when the records are durable.

        Returns the signal of the write's code for the client; NONE if nothing is written.
        """
        for key, timer in decision.timers.items():
            if timer is None:
                self._timers.cancel(key)
            else:
                self._timers.schedule(
                    key, timer.delay_ms / 1000, partial(self._on_timer, shard, timer)
                )
        for replied, reply in decision.answers:
            first = replied.fire(reply)
            assert first, "a request has one answer"
        write = decision.writing
        if write is None:
            return _NOTHING_WRITTEN
        records = write.records
        shard.in_flight.begin(records)
        if not write.splits or len(records) <= TOMBSTONES_PER_BATCH:
            self._write(shard, write, records)
            return write.ended
        starts = range(0, len(records), TOMBSTONES_PER_BATCH)
        write.left = len(starts)
        for start in starts:
            self._write(shard, write, records[start : start + TOMBSTONES_PER_BATCH])
        return write.ended

    def _on_timer(self, shard: S, timer: Timer) -> None:
        if self._is_current(shard):
            out = self._new_decision()
            shard.on_timer(timer, out)
            self.carry_out(shard, out)

    def _write(self, shard: S, write: Write[Any], records: Sequence[Any]) -> None:
        """Append one batch; what follows is done in the turn in which it is durable or fails."""
        now = self._clock.wall_ms()
        batch = build_batch(
            [(now, key, value, ()) for key, value in map(self._encode, records)],
            codec=self._compression,
            **(write.producer or {}),
        )
        try:
            tp = TopicPartition(self._topic, shard.partition)
            first_offset, durable = self._writer.append(tp, batch)
        except KafkaError as error:
            self._ended(shard, write, records, error.code, -1)
        except RecordsError:
            # The coordinator's own batch was refused: a bug here, and nothing was written.
            self._ended(shard, write, records, ErrorCode.UNKNOWN_SERVER_ERROR, -1)
            raise
        else:
            if durable.fired:  # as long as this broker is alone in the ISR
                self._ended(shard, write, records, durable.value, first_offset)
            else:
                begin(self._when_durable(shard, write, records, first_offset, durable))

    async def _when_durable(
        self,
        shard: S,
        write: Write[Any],
        records: Sequence[Any],
        first_offset: int,
        durable: Signal[ErrorCode],
    ) -> None:
        self._ended(shard, write, records, await durable, first_offset)

    def _ended(
        self,
        shard: S,
        write: Write[Any],
        records: Sequence[Any],
        code: ErrorCode,
        first_offset: int,
    ) -> None:
        """A batch is durable, or has failed.

        Its records stay in flight until they are replayed, which tells a shard's own records from
        loaded ones.
        """
        if code is ErrorCode.NONE:
            if self._is_current(shard):
                for offset, record in enumerate(records, first_offset):
                    shard.replay(record, offset)
            else:
                code = ErrorCode.NOT_COORDINATOR
        shard.in_flight.end(records)
        if write.splits:
            write.left -= 1
            code = write.code = write.code or code
            if write.left:
                return
        told = code
        if code is not ErrorCode.NONE:
            told = response_code(code) if write.translate is None else write.translate(code)
        following = None
        if write.then is not None:
            following = self._new_decision()
            write.then(told, following)
        write.ended.fire(told)
        if following is not None:
            self.carry_out(shard, following)
        self._on_settled(shard, write, code)
