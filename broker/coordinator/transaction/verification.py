"""Whether partitions belong to a transaction whose coordinator is another broker (KIP-890, part 1).

Used by the gate of Produce and by TxnOffsetCommit, in a cluster only: they ask before the append,
by AddPartitionsToTxn with `verify_only`, and between the answer and the append other things happen.
A `VerificationGuard` makes up for that: it is made before the question, and an append is refused if
since then a marker of the producer was written to the partition, or another epoch of leadership
began. So a batch that arrives after the markers of its transaction cannot open it again, and hang.

    verified = remote.guard(producer, partitions)
    verified.answered(await remote.ask(...))
    verified.check(tp, producer)         in the turn of the append
    verified.release()

After Kafka's `AddPartitionsToTxnManager`, and `VerificationGuard` and `VerificationStateEntry` of
its `ProducerStateManager`.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from broker.cluster.image import NO_LEADER, MetadataImage
from broker.coordinator.transaction.decisions import Producer
from broker.peers.peer import Peer, PeerError
from broker.replication.partition import Partition
from broker.world.tasks import Make
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.types import TRANSACTION_TOPIC, TopicPartition
from storage.waits import Signal

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 30.0
"""Kafka takes request.timeout.ms of its clients between brokers."""

Codes = dict[TopicPartition, ErrorCode]
Connect = Callable[[int], Peer | None]
"""The peer of a broker; None while the image does not know it."""
_Key = tuple[TopicPartition, int]


class Guards:
    """The guards of questions that are under way, so that markers can break them."""

    def __init__(self) -> None:
        self._guarded: dict[_Key, set[VerificationGuard]] = {}

    def on_marker(self, tp: TopicPartition, producer_id: int) -> None:
        """A marker of the producer was written to a partition here."""
        for guard in self._guarded.pop((tp, producer_id), ()):
            guard.is_whole = False

    def new(self, partition: Partition, producer_id: int) -> "VerificationGuard":
        """Watch over a partition until `release`."""
        guard = VerificationGuard(self, partition, producer_id)
        self._guarded.setdefault(guard.key, set()).add(guard)
        return guard

    def release(self, guard: "VerificationGuard") -> None:
        """The append is done or refused."""
        others = self._guarded.get(guard.key)
        if others is not None:
            others.discard(guard)
            if not others:
                del self._guarded[guard.key]


class VerificationGuard:
    """Tells whether a partition may still take what was verified for it."""

    __slots__ = ("_all", "_epoch", "_partition", "is_whole", "key")

    def __init__(self, everything: Guards, partition: Partition, producer_id: int) -> None:
        self._all = everything
        self._partition = partition
        self._epoch = partition.leader_epoch
        self.key: Final[_Key] = (partition.topic_partition, producer_id)
        self.is_whole = True

    def holds(self) -> bool:
        """Whether no marker of the producer, and no other leadership, came in between."""
        return self.is_whole and self._partition.leader_epoch == self._epoch

    def release(self) -> None:
        """The guard is not needed any more."""
        self._all.release(self)


class Verified:
    """The coordinator's answer about the partitions of one request.

    Its holder calls `release` when the batches are appended or refused.
    """

    __slots__ = ("_codes", "_guards", "producer")

    def __init__(self, producer: Producer, guards: Iterable[VerificationGuard]) -> None:
        self.producer = producer
        self._guards = {guard.key[0]: guard for guard in guards}
        self._codes: Codes = {}

    def answered(self, codes: Codes) -> None:
        """The answer has come."""
        self._codes = codes

    def check(self, tp: TopicPartition, producer: Producer) -> None:
        """Check right before the append. Raises KafkaError with the coordinator's code."""
        guard = self._guards.get(tp)
        if guard is None or producer != self.producer:
            # The transaction was open in the partition when `guard` took the others, and has ended;
            # or the batch is another producer's: one request is for one producer.
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        code = self._codes.get(tp, ErrorCode.INVALID_TXN_STATE)
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        if not guard.holds():
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "The transaction ended while it was verified"
            )

    def release(self) -> None:
        """Watch over the partitions no longer."""
        for guard in self._guards.values():
            guard.release()


class RemoteCoordinators:
    """The transaction coordinators of other brokers."""

    def __init__(
        self,
        image: MetadataImage,
        broker_id: int,
        partition_for: Callable[[str], int],
        connect: Connect,
        guards: Guards,
        begin: Callable[[Make], object],
    ) -> None:
        """`partition_for`: the partition of `__transaction_state` of a transactional id. `begin`
        has work done beside the request that needs it (`broker.world.tasks`)."""
        self._image = image
        self._broker_id = broker_id
        self._partition_for = partition_for
        self._connect = connect
        self._guards = guards
        self._begin = begin

    def is_here(self, transactional_id: str) -> bool:
        """Whether this broker coordinates the transactional id."""
        return self._coordinator(transactional_id) == self._broker_id

    def guard(self, producer: Producer, partitions: Iterable[Partition]) -> Verified:
        """Begin to watch over partitions; the `ask` that follows is about these."""
        return Verified(
            producer,
            [self._guards.new(partition, producer.producer_id) for partition in partitions],
        )

    async def ask(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool = True,
    ) -> Codes:
        """Have the coordinator verify partitions, or add them to the transaction.

        Returns the code for each. Without an answer all have the same: COORDINATOR_NOT_AVAILABLE,
        NETWORK_EXCEPTION, or why the request was refused.
        """
        broker_id = self._coordinator(transactional_id)
        peer = None if broker_id == NO_LEADER else self._connect(broker_id)
        if peer is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        request = _request(transactional_id, producer, partitions, verify_only=verify_only)
        # The coordinator may be silent for long, and the request must hold no worker meanwhile.
        answered: Signal[Codes] = Signal()

        async def asking() -> None:
            answered.fire(await self._asked(peer, request, partitions))

        self._begin(asking)
        return await answered.parked()

    async def _asked(
        self, peer: Peer, request: AddPartitionsToTxnRequest, partitions: Collection[TopicPartition]
    ) -> Codes:
        try:
            answer = await peer.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, timeout_s=TIMEOUT_S)
        except PeerError as error:
            logger.info("A transaction cannot be verified now: %s", error)
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        assert isinstance(answer, AddPartitionsToTxnResponse)
        return _codes(answer, partitions)

    def _coordinator(self, transactional_id: str) -> int:
        topic = self._image.topic(TRANSACTION_TOPIC)
        if topic is None:
            return NO_LEADER
        partition = topic.partitions.get(self._partition_for(transactional_id))
        return NO_LEADER if partition is None else partition.leader


def _request(
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
    *,
    verify_only: bool,
) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=verify_only,
                topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in topics.items()
                ],
            )
        ]
    )


def _codes(answer: AddPartitionsToTxnResponse, partitions: Collection[TopicPartition]) -> Codes:
    if answer.error_code:
        # The client must not learn that this broker is not authorized.
        code = _code(answer.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            logger.error("The coordinator does not let this broker verify transactions")
            code = ErrorCode.INVALID_TXN_STATE
        return dict.fromkeys(partitions, code)
    return {
        TopicPartition(topic.name, one.partition_index): _code(one.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for one in topic.results_by_partition
    }


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
