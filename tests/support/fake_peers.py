"""Other brokers as a user of peers sees them: `broker.peers.peer.Peer` without a connection."""

from collections.abc import Callable
from typing import Any

from broker.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.peers.peer import PeerError
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from protocol.messages.registry import SPECS
from protocol.schema import Message
from protocol.types import TopicPartition
from storage.waits import Signal


class FakePeer:
    """Answers by a function, or raises what that returns; may hold its answers back."""

    def __init__(self, answer: Callable[[ApiKey, Any], Any] | None = None) -> None:
        self.answer = answer or (lambda key, request: PeerError("nobody there"))
        self.asked: list[tuple[ApiKey, Any]] = []
        self.held: list[Signal[None]] | None = None
        """Fired by the test; None: nothing is held."""
        self.closed = False

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Any:
        self.asked.append((key, request))
        if self.held is not None:
            signal: Signal[None] = Signal()
            self.held.append(signal)
            await signal
        answer = self.answer(key, request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ready(self, *, timeout_s: float) -> None:
        pass

    def version_of(self, key: ApiKey) -> int | None:
        return SPECS[key].max_version

    def close(self) -> None:
        self.closed = True


def image_of(topics: dict[str, list[int]], brokers: tuple[int, ...] = (1, 2, 3)) -> MetadataImage:
    """An image with the leader of each partition, and brokers at `b<id>`:9092."""
    image = MetadataImage(cluster_id="c")
    for broker_id in brokers:
        endpoint = Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092, protocol="PLAINTEXT")
        image.set_broker(BrokerImage(broker_id=broker_id, endpoints=(endpoint,)))
    for name, leaders in topics.items():
        set_leaders(image, name, leaders)
    return image


def set_leaders(image: MetadataImage, name: str, leaders: list[int]) -> None:
    """Make the topic, or give its partitions other leaders."""
    partitions = {
        index: PartitionImage(leader=leader, leader_epoch=1, replicas=(1, 2, 3), isr=(1, 2, 3))
        for index, leader in enumerate(leaders)
    }
    image.set_topic(
        TopicImage(name=name, topic_id=name.encode().ljust(16, b"-"), partitions=partitions)
    )


def answering(
    codes: dict[TopicPartition, ErrorCode], error: ErrorCode = ErrorCode.NONE
) -> Callable[[ApiKey, Any], Any]:
    """A transaction coordinator that gives each partition this code, else NONE."""

    def answer(key: ApiKey, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        assert key is ApiKey.ADD_PARTITIONS_TO_TXN
        [transaction] = request.transactions
        return AddPartitionsToTxnResponse(
            error_code=error,
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=index,
                                    partition_error_code=codes.get(
                                        TopicPartition(topic.name, index), ErrorCode.NONE
                                    ),
                                )
                                for index in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
            ],
        )

    return answer
