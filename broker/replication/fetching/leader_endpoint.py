"""A leader as a fetcher sees it: questions in, answers out, over one `Peer`.

Topics go by id where both sides know that (Fetch v13+), else by name; both are filled in, and the
version that is sent has one of them. After `kafka.server.RemoteLeaderEndPoint` and
`org.apache.kafka.server.LeaderEndPoint`.
"""

from collections.abc import Callable
from typing import Final

from broker.peers.peer import Peer
from broker.replication.fetching.client_session import LARGEST_NAMELESS, SessionPlan
from broker.replication.fetching.settings import FetchingSettings
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.types import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ZERO_UUID,
    TopicPartition,
)

FIRST_WITH_DIVERGING_EPOCH: Final = 12
"""The first version of Fetch that tells a follower where its log diverges."""


class LeaderEndpoint:
    """The leader of some partitions, over one connection."""

    def __init__(self, peer: Peer, *, broker_id: int, broker_epoch: Callable[[], int]) -> None:
        """`broker_epoch`: that of this broker's registration, which changes with each session."""
        self._peer = peer
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch

    async def fetch(self, plan: SessionPlan, settings: FetchingSettings) -> FetchResponse:
        """Fetch as `plan` says. Raises PeerError, KafkaError for a leader that is too old."""
        request = _fetch_request(plan, settings)
        request.replica_id = self._broker_id
        request.replica_state = ReplicaState(
            replica_id=self._broker_id, replica_epoch=self._broker_epoch()
        )
        known = self._peer.version_of(ApiKey.FETCH)
        if known is not None and known < FIRST_WITH_DIVERGING_EPOCH:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The leader knows Fetch up to version {known}, which tells followers nothing of "
                "diverging epochs.",
            )
        nameless = any(ask.topic_id == ZERO_UUID for ask in plan.asks.values())
        response = await self._peer.ask(
            ApiKey.FETCH,
            request,
            version=LARGEST_NAMELESS if nameless else None,
            timeout_s=settings.timeout_s + settings.max_wait_ms / 1000,
        )
        assert isinstance(response, FetchResponse)
        return response

    async def ends(
        self, tp: TopicPartition, leader_epoch: int, timeout_s: float
    ) -> tuple[int, int]:
        """Return where the leader's log begins and ends. Raises PeerError, KafkaError.

        The end is read first, because it only grows: a start that is read later is never above it
        unless records were deleted meanwhile.
        """
        end = await self._offset(tp, leader_epoch, LATEST_TIMESTAMP, timeout_s)
        start = await self._offset(tp, leader_epoch, EARLIEST_TIMESTAMP, timeout_s)
        return start, end

    async def _offset(
        self, tp: TopicPartition, leader_epoch: int, timestamp: int, timeout_s: float
    ) -> int:
        asked = ListOffsetsPartition(
            partition_index=tp.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[ListOffsetsTopic(name=tp.topic, partitions=[asked])],
        )
        response = await self._peer.ask(ApiKey.LIST_OFFSETS, request, timeout_s=timeout_s)
        assert isinstance(response, ListOffsetsResponse)
        for topic in response.topics:
            for found in topic.partitions:
                if topic.name == tp.topic and found.partition_index == tp.partition:
                    if found.error_code:
                        raise KafkaError(ErrorCode(found.error_code))
                    offset: int = found.offset
                    return offset
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The leader says nothing of {tp}.")

    def close(self) -> None:
        """Close the connection."""
        self._peer.close()


def _fetch_request(plan: SessionPlan, settings: FetchingSettings) -> FetchRequest:
    asked: dict[tuple[str, bytes], list[FetchPartition]] = {}
    for tp, ask in plan.asks.items():
        asked.setdefault((tp.topic, ask.topic_id), []).append(
            FetchPartition(
                partition=tp.partition,
                current_leader_epoch=ask.leader_epoch,
                fetch_offset=ask.fetch_offset,
                last_fetched_epoch=ask.last_fetched_epoch,
                log_start_offset=ask.log_start_offset,
                partition_max_bytes=settings.partition_max_bytes,
            )
        )
    forgotten: dict[tuple[str, bytes], list[int]] = {}
    for tp, topic_id in plan.forgotten.items():
        forgotten.setdefault((tp.topic, topic_id), []).append(tp.partition)
    return FetchRequest(
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        session_id=plan.session_id,
        session_epoch=plan.session_epoch,
        topics=[
            FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
            for (name, topic_id), partitions in asked.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=name, topic_id=topic_id, partitions=indexes)
            for (name, topic_id), indexes in forgotten.items()
        ],
    )
