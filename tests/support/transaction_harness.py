"""A transaction coordinator on virtual time, over a log and markers in memory."""

from itertools import count
from typing import Any

from broker.coordinator.marker_writer import Marker
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.settings import TransactionSettings
from broker.coordinator.transaction.shard import Ownership, TransactionShard
from broker.coordinator.transaction.state import (
    Transaction,
    TransactionState,
    TransactionValue,
)
from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import Signal, Work
from tests.support.coordinator_harness import CoordinatorHarness
from tests.support.manual_clock import ManualClock
from tests.support.memory_partition_log import MemoryPartitionLog

TIMEOUT_MS = 60_000
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


class MemoryMarkers:
    """Takes markers; a test can make it refuse some partitions, or hold all markers back."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.hold = False
        self._held: list[Signal[None]] = []

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        if self.hold:
            released: Signal[None] = Signal()
            self._held.append(released)
            await released
        refusal = self.refusals.get(tp, ErrorCode.NONE)
        if refusal is ErrorCode.NONE:
            self.written.append((tp, marker))
        return refusal

    def release(self) -> None:
        """Write the markers that were held back, and hold none from now on."""
        self.hold = False
        held, self._held = self._held, []
        for released in held:
            released.fire()


class CountedIds:
    """Gives consecutive producer ids; none after `used_up`, until it was made ready."""

    def __init__(self, first: int) -> None:
        self._ids = count(first)
        self.used: set[int] = set()
        self.used_up = False

    def next_id(self) -> int:
        if self.used_up:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return next(self._ids)

    def note_used(self, producer_id: int) -> None:
        self.used.add(producer_id)

    async def make_ready(self) -> None:
        self.used_up = False


class Reply(Ownership):
    """The answer to a request for a transactional id."""

    __slots__ = ()

    @property
    def producer(self) -> Producer:
        assert self.code is ErrorCode.NONE, self
        return Producer(self.producer_id, self.producer_epoch)


class TransactionHarness(CoordinatorHarness):
    """The coordinator under test; every call checks the shards' invariants afterwards."""

    def __init__(
        self,
        log: MemoryPartitionLog | None = None,
        clock: ManualClock | None = None,
        markers: MemoryMarkers | None = None,
        first_producer_id: int = 1000,
        **settings: Any,
    ) -> None:
        super().__init__(log, clock)
        self.markers = markers or MemoryMarkers()
        self.ids = CountedIds(first_producer_id)
        self.coordinator = TransactionCoordinator(
            TransactionSettings(**settings),
            self.log,
            self.markers,
            self.deadlines,
            self.clock,
            self.ids,
        )
        self.coordinator.startup()

    def restarted(self) -> "TransactionHarness":
        """Return a restarted coordinator over the same log, with everything loaded."""
        self.coordinator.shutdown()
        settings = self.coordinator.settings
        after = TransactionHarness(self.log, self.clock, self.markers, self.ids.next_id())
        after.coordinator.settings = settings
        after.load()
        return after

    def load(self, transactional_id: str = "id") -> None:
        """Load the partition of this transactional id."""
        self.load_shard(lambda: self.shard(transactional_id))

    def shard(self, transactional_id: str = "id") -> TransactionShard:
        return self.coordinator._runtime.shard_of(transactional_id)

    def value(self, transactional_id: str = "id") -> TransactionValue:
        return self.shard(transactional_id).transactions[transactional_id].value

    def state(self, transactional_id: str = "id") -> TransactionState:
        return self.value(transactional_id).state

    # ---- requests

    def init(
        self,
        transactional_id: str = "id",
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: Producer | None = None,
    ) -> Reply:
        return self._reply(
            self.coordinator.init_producer_id(transactional_id, timeout_ms, expected)
        )

    def _reply(self, request: Work[Ownership]) -> Reply:
        """The reply; UNKNOWN_SERVER_ERROR if it has to be waited for."""
        try:
            owned = begin(request)
        except KafkaError as error:
            return Reply(error.code)
        self.check()
        return Reply(*owned.value) if owned.fired else Reply(ErrorCode.UNKNOWN_SERVER_ERROR)

    def owner(self, transactional_id: str = "id") -> Producer:
        """Return a new owner without a transaction."""
        reply = self.init(transactional_id)
        while reply.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            reply = self.init(transactional_id)
        return reply.producer

    def owner_at(self, epoch: int) -> Producer:
        """Return the owner of "id", which has this epoch."""
        shard = self.shard()
        value = TransactionValue(
            producer_id=1,
            producer_epoch=epoch,
            timeout_ms=TIMEOUT_MS,
            updated_ms=self.clock.wall_ms(),
        )
        shard.transactions["id"] = Transaction("id", value, shard.in_flight)
        return Producer(1, epoch)

    def opened(self, *partitions: TopicPartition, version: int = 0) -> Producer:
        """Return the owner of "id", with these partitions in its transaction."""
        owner = self.owner()
        assert self.add(owner, *partitions, version=version) is ErrorCode.NONE
        return owner

    def add(
        self,
        producer: Producer,
        *partitions: TopicPartition,
        transactional_id: str = "id",
        version: int = 0,
    ) -> ErrorCode:
        try:
            added = self.coordinator.add_partitions(
                transactional_id, producer, partitions, version=version
            )
        except KafkaError as error:
            return error.code
        self.check()
        return added.value if added.fired else ErrorCode.UNKNOWN_SERVER_ERROR

    def verify(self, producer: Producer, partition: TopicPartition) -> ErrorCode:
        try:
            self.coordinator.verify_partition("id", producer, partition)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def end(
        self,
        producer: Producer,
        *,
        commit: bool = True,
        transactional_id: str = "id",
        version: int = 0,
    ) -> Reply:
        return self._reply(
            self.coordinator.end(transactional_id, producer, commit=commit, version=version)
        )
