"""The common part of coordinators' harnesses: virtual time, and loading as a new leader."""

from collections.abc import Callable, Iterator
from typing import Any

import trio

from broker.deadlines import Deadlines
from protocol.errors import ErrorCode, KafkaError
from tests.support.manual_clock import ManualClock
from tests.support.memory_partition_log import MemoryPartitionLog


class CoordinatorHarness:
    """`coordinator` is set by the harness; every call checks its shards' invariants afterwards."""

    coordinator: Any

    def __init__(self, log: MemoryPartitionLog | None, clock: ManualClock | None) -> None:
        self.clock = clock or ManualClock()
        self.deadlines = Deadlines(self.clock)
        self.log = log or MemoryPartitionLog()

    def advance_ms(self, milliseconds: int) -> None:
        """Let time pass, firing timers as they come due."""
        end = self.clock.monotonic() + milliseconds / 1000
        while True:
            due = self.deadlines.next_deadline()
            if due is None or due > end:
                break
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            if not self.deadlines.run_due():
                self.clock.advance(ms=1)  # The clock has whole milliseconds only.
        self.clock.advance(max(end - self.clock.monotonic(), 0))
        self.deadlines.run_due()
        self.check()

    def load_shard(self, find: Callable[[], Any]) -> None:
        """Load the partition that `find` needs, as a broker that has just become its leader."""

        async def run() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.coordinator.run)
                with trio.fail_after(5):
                    while self.coordinator._runtime.is_loading:
                        await trio.sleep(0)
                nursery.cancel_scope.cancel()

        try:
            find()
        except KafkaError as error:
            assert error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        trio.run(run)
        self.check()

    def shards(self) -> Iterator[Any]:
        """Yield all active shards."""
        yield from self.coordinator._runtime.active()

    def check(self) -> None:
        """Check the invariants of all shards."""
        for shard in self.shards():
            shard._check()
