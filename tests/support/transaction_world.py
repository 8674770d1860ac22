"""Partitions and clients around the transaction coordinator, which may crash at any append.

Partitions take writes and markers, and clients remember the answers that they got.

The model of the answers to clients has three rules: all writes of a transaction have the same fate;
a fate that was answered is final; an owner that was replaced cannot change anything any more.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from broker.coordinator.marker_writer import Marker
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.records import encode_key, encode_value
from broker.coordinator.transaction.state import AT_REST, TransactionValue
from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.waits import Signal
from tests.support.manual_clock import ManualClock
from tests.support.memory_partition_log import MemoryPartitionLog
from tests.support.transaction_harness import TransactionHarness

STATE = TopicPartition("__transaction_state", 0)
TIMEOUT_MS = 30_000
EXPIRATION_MS = 600_000


class Fate(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class DataTransaction:
    """The writes of one owner between two EndTxn."""

    writes: list[tuple[TopicPartition, int]] = field(default_factory=list)
    answered: Fate | None = None


@dataclass(eq=False)
class Owner:
    """A client with a producer id and epoch of a transactional id."""

    transactional_id: str
    producer: Producer
    version: int
    replaced: bool = False
    """Whether a later InitProducerId made another client the owner."""
    current: DataTransaction = field(default_factory=DataTransaction)
    ending: Fate | None = None
    """The outcome that it asks EndTxn for, always the same until it is answered."""


class Partitions:
    """Data partitions: their producer state as far as transactions go (S-TXN-1, S-TXN-2)."""

    def __init__(self) -> None:
        self.fates: dict[tuple[TopicPartition, int], Fate] = {}
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.hold = False
        self._epochs: dict[tuple[TopicPartition, int], int] = {}
        self._open: dict[tuple[TopicPartition, int], tuple[int, list[int]]] = {}
        self._coordinator_epochs: dict[tuple[TopicPartition, int], int] = {}
        self._held: list[tuple[TopicPartition, Marker, Signal[None]]] = []

    def is_open(self, tp: TopicPartition, producer: Producer) -> bool:
        """Return whether the producer has an open transaction there in its epoch."""
        found = self._open.get((tp, producer.producer_id))
        return found is not None and found[0] == producer.producer_epoch

    def append(self, tp: TopicPartition, producer: Producer, value: int) -> bool:
        """Append a transactional batch that the coordinator allows; return whether it was taken."""
        key = (tp, producer.producer_id)
        if producer.producer_epoch < self._epochs.get(key, -1):
            return False
        epoch, values = self._open.setdefault(key, (producer.producer_epoch, []))
        assert epoch == producer.producer_epoch, f"{tp}: epoch {epoch} was left open"
        self._epochs[key] = epoch
        values.append(value)
        self.fates[tp, value] = Fate.OPEN
        return True

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        """Write a marker, as a `MarkerWriter`."""
        if self.hold:
            released: Signal[None] = Signal()
            self._held.append((tp, marker, released))
            await released
        return self.refusals.get(tp) or self._write(tp, marker)

    def _write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        key = (tp, marker.producer_id)
        if marker.producer_epoch < self._epochs.get(key, -1):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        opened = self._open.get(key)
        if marker.transaction_version >= 2 and opened and opened[0] == marker.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < self._coordinator_epochs.get(key, -1):
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        self._epochs[key] = marker.producer_epoch
        self._coordinator_epochs[key] = marker.coordinator_epoch
        for value in self._open.pop(key, (0, []))[1]:
            self.fates[tp, value] = Fate.COMMITTED if marker.commit else Fate.ABORTED
        return ErrorCode.NONE

    def release(self) -> None:
        """Write the markers that were held back."""
        self.hold = False
        held, self._held = self._held, []
        for _, _, released in held:
            released.fire()

    def forget_held(self, written: int) -> None:
        """Drop held markers as a dead process does; the first `written` are in the log."""
        held, self._held = self._held[:written], []
        for tp, marker, _ in held:
            self._write(tp, marker)


class TransactionWorld:
    """The coordinator, its log and its partitions; each step checks the invariants."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = MemoryPartitionLog()
        self.log.led = {STATE: 0}
        self.partitions = Partitions()
        self.owners: list[Owner] = []
        self.transactions: list[DataTransaction] = []
        self.given: set[tuple[int, int]] = set()
        self.id_of: dict[int, str] = {}
        self._values = count()
        self._blocks = count(0, 1000)
        self.life = self._begin()

    def _begin(self) -> TransactionHarness:
        """Begin a broker's life, with a new block of producer ids."""
        life = TransactionHarness(
            self.log,
            self.clock,
            self.partitions,  # type: ignore[arg-type]
            next(self._blocks),
            partition_count=1,
            id_expiration_ms=EXPIRATION_MS,
            remove_expired_interval_ms=60_000,
        )
        if self.log.batches:
            life.load()
        return life

    def age(self, transactional_id: str, epoch: int) -> None:
        """Raise the id's epoch, as many earlier owners would."""
        producer_id = next(self._blocks)
        self.id_of[producer_id] = transactional_id
        value = TransactionValue(
            producer_id=producer_id,
            producer_epoch=epoch,
            timeout_ms=TIMEOUT_MS,
            updated_ms=self.clock.wall_ms(),
        )
        record = (self.clock.wall_ms(), encode_key(transactional_id), encode_value(value), ())
        self.log.append(STATE, build_batch([record]))
        self.life = self._begin()

    # ---- clients

    def init(self, transactional_id: str, version: int, going_on: Owner | None = None) -> None:
        """Init a new client, or one that goes on after an error (KIP-360)."""
        life = self.life

        async def ask() -> None:
            expected = going_on.producer if going_on else None
            code, producer_id, epoch = await life.coordinator.init_producer_id(
                transactional_id, TIMEOUT_MS, expected
            )
            if code is not ErrorCode.NONE or life is not self.life:
                return
            self._became_owner(transactional_id, Producer(producer_id, epoch), version, going_on)

        with suppress(KafkaError):
            begin(ask())
        self.check()

    def _became_owner(
        self, transactional_id: str, producer: Producer, version: int, going_on: Owner | None
    ) -> None:
        pair = (producer.producer_id, producer.producer_epoch)
        assert self.id_of.setdefault(producer.producer_id, transactional_id) == transactional_id
        if going_on is None or going_on.producer != producer:
            assert pair not in self.given, f"{pair} was given twice"
        self.given.add(pair)
        for other in self.owners:
            if other.transactional_id == transactional_id and other is not going_on:
                other.replaced = True
        if going_on is not None:
            if going_on.replaced:
                # An expired id is forgotten, and made again for any client that asks.
                assert pair[0] != going_on.producer.producer_id, "fenced, and let in again"
            going_on.producer, going_on.replaced = producer, False
            going_on.current, going_on.ending = DataTransaction(), None
        else:
            self.owners.append(
                Owner(transactional_id=transactional_id, producer=producer, version=version)
            )

    def write(self, owner: Owner, tp: TopicPartition, *, add: bool = True) -> None:
        """Write a record in the owner's transaction; with `add` False, without AddPartitions."""
        producer = owner.producer
        if owner.ending is not None:
            return
        coordinator = self.life.coordinator
        try:
            if not self.partitions.is_open(tp, producer):
                if add:
                    added = coordinator.add_partitions(
                        owner.transactional_id, producer, [tp], version=owner.version
                    )
                    if added.value is not ErrorCode.NONE:
                        return
                coordinator.verify_partition(owner.transactional_id, producer, tp)
        except KafkaError:
            return
        value = next(self._values)
        if self.partitions.append(tp, producer, value):
            assert not owner.replaced, "a replaced owner wrote"
            if not owner.current.writes:
                self.transactions.append(owner.current)
            owner.current.writes.append((tp, value))
        self.check()

    def end(self, owner: Owner, *, commit: bool) -> None:
        """Send EndTxn, always with the same outcome until it is answered."""
        if owner.ending is None:
            owner.ending = Fate.COMMITTED if commit else Fate.ABORTED
        wanted, transaction, life = owner.ending, owner.current, self.life
        was = owner.producer

        async def ask() -> None:
            code, producer_id, epoch = await life.coordinator.end(
                owner.transactional_id,
                was,
                commit=wanted is Fate.COMMITTED,
                version=owner.version,
            )
            if code is not ErrorCode.NONE or life is not self.life or owner.producer != was:
                return
            assert not owner.replaced, "a replaced owner ended a transaction"
            assert transaction.answered in (None, wanted)
            transaction.answered = wanted
            following = Producer(producer_id, epoch)
            if owner.version >= 2:
                pair = (producer_id, epoch)
                assert following != was and pair not in self.given
                self.given.add(pair)
                assert self.id_of.setdefault(producer_id, owner.transactional_id) == (
                    owner.transactional_id
                )
                owner.producer = following
            owner.current, owner.ending = DataTransaction(), None

        try:
            begin(ask())
        except KafkaError as error:
            if error.code is ErrorCode.INVALID_TXN_STATE and not transaction.writes:
                owner.ending = None  # There was no transaction.
        self.check()

    # ---- faults of the broker

    def crash(self, *, appends: int, markers: int) -> None:
        """Kill the broker; the first of the pending appends and markers are in the logs."""
        self.log = self.log.after_crash(STATE, appends)
        assert self.log.led is not None
        self.log.led[STATE] += 1
        self.partitions.forget_held(markers)
        self.partitions.hold = False
        self.life = self._begin()
        self.check()

    def resign_and_lead_again(self) -> None:
        """Resign the partition's leadership and take it again."""
        coordinator = self.life.coordinator
        coordinator.on_resigned(STATE.partition)
        assert self.log.led is not None
        self.log.led[STATE] += 1
        if self.log.batches:
            self.life.load()
        self.check()

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass."""
        self.life.advance_ms(milliseconds)
        self.check()

    # ---- promises

    def check(self) -> None:
        """Check the promises that hold at any time."""
        self.life.check()
        for transaction in self.transactions:
            fates = {self.partitions.fates[write] for write in transaction.writes} - {Fate.OPEN}
            assert len(fates) <= 1, f"half of {transaction} is committed"
            if transaction.answered is not None:
                assert fates <= {transaction.answered}, f"{transaction} was answered otherwise"

    def heal(self) -> None:
        """End all faults; then every transaction must be decided as it was answered."""
        self.log.fail_with = ErrorCode.NONE
        self.log.hold = False
        self.log.release()
        self.partitions.refusals.clear()
        self.partitions.release()
        self.pass_ms(TIMEOUT_MS + 30_000)
        assert Fate.OPEN not in self.partitions.fates.values(), "a transaction hangs"
        for transaction in self.transactions:
            fates = {self.partitions.fates[write] for write in transaction.writes}
            assert len(fates) == 1
            if transaction.answered is not None:
                assert fates == {transaction.answered}
        for _, value in self.life.coordinator.list_transactions():
            assert value.state in AT_REST, value
        statistics = self.life.statistics()
        assert statistics.markers.transactions == 0
