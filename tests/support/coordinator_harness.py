"""The common part of coordinators' harnesses: virtual time, and loading as a new leader."""

from collections.abc import Callable, Iterator
from typing import Any

from broker.deadlines import Deadlines
from protocol.errors import ErrorCode, KafkaError
from storage.waits import at_once
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
            self.work()
        self.clock.advance(max(end - self.clock.monotonic(), 0))
        self.deadlines.run_due()
        self.work()
        self.check()

    def work(self) -> None:
        """Do what the coordinator has begun and no request waits for."""
        waiting = self.coordinator._runtime.tasks.waiting
        while waiting:
            at_once(waiting.popleft()())

    def statistics(self) -> Any:
        """The coordinator's statistics."""
        return at_once(self.coordinator.statistics())

    def load_shard(self, find: Callable[[], Any]) -> None:
        """Load the partition that `find` needs, as a broker that has just become its leader."""
        try:
            find()
        except KafkaError as error:
            assert error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self.work()
        assert not self.coordinator._runtime.is_loading
        self.check()

    def shards(self) -> Iterator[Any]:
        """Yield all active shards."""
        yield from self.coordinator._runtime.active()

    def check(self) -> None:
        """Check the invariants of all shards."""
        for shard in self.shards():
            shard._check()
