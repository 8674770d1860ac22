"""AlterPartition: leaders change the ISRs of their partitions through the controller.

`isr_changes` has the rules for granting a wish. A granted ISR is written under the version that the
leader knows, so that one of two changes is refused (INVALID_UPDATE_VERSION). Every broker then gets
the state of all partitions of the request.

Source: `KafkaController.processAlterPartition` (3.9).
"""

import logging
from collections.abc import Sequence

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.cluster_state import ControllerState
from broker.controller.controller_tree import ControllerTree
from broker.controller.isr_changes import FIRST_VERSION_WITH_IDS, judged, wish_of
from broker.controller.sending import Sending
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredPartitionResult,
    AlteredTopicResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)

Outcomes = dict[TopicPartition, LeaderAndIsr | ErrorCode]
"""A partition's state as it is now, or why it was not changed."""


class Alterations:
    """See the module."""

    def __init__(self, state: ControllerState, tree: ControllerTree, sending: Sending) -> None:
        self._state = state
        self._tree = tree
        self._sending = sending

    async def alter(
        self, request: AlterPartitionRequest, version: int
    ) -> tuple[AlterPartitionResponse, list[TopicPartition]]:
        """Change what may be changed; return the answer, and the partitions that are as wished."""
        if not self._is_of_live_broker(request):
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), []
        outcomes: Outcomes = {}
        wanted: dict[TopicPartition, LeaderAndIsr] = {}
        unknown: list[AlteredTopicResult] = []
        live = self._state.live_brokers()
        for topic in request.topics:
            name = (
                self._state.name_of(topic.topic_id)
                if version >= FIRST_VERSION_WITH_IDS
                else topic.topic_name
            )
            if name is None:
                unknown.append(_unknown_topic(topic.topic_id, topic.partitions))
                continue
            for partition in topic.partitions:
                tp = TopicPartition(name, partition.partition_index)
                wish = wish_of(request.broker_id, partition, version)
                verdict = judged(wish, self._state.leadership(tp), live, version)
                if verdict.error is not None:
                    log.info("Rejecting the ISR %s of %s: %s", wish.isr, tp, verdict.error.name)
                    outcomes[tp] = verdict.error
                elif verdict.unchanged is not None:
                    outcomes[tp] = verdict.unchanged
                elif verdict.wanted is not None:
                    wanted[tp] = verdict.wanted._replace(controller_epoch=self._state.epoch)
                await PAUSE
        await self._write(wanted, outcomes)
        await self._sending.metadata(self._state.brokers, outcomes)
        altered = [tp for tp, outcome in outcomes.items() if isinstance(outcome, LeaderAndIsr)]
        return self._response(outcomes, unknown, version), altered

    def _is_of_live_broker(self, request: AlterPartitionRequest) -> bool:
        known = self._state.brokers.get(request.broker_id)
        if known is None or known.epoch != request.broker_epoch:
            log.info(
                "Ignoring AlterPartition of broker %d in its epoch %d: registered is %s",
                request.broker_id,
                request.broker_epoch,
                "none" if known is None else known.epoch,
            )
            return False
        return True

    async def _write(self, wanted: dict[TopicPartition, LeaderAndIsr], outcomes: Outcomes) -> None:
        written = await self._tree.update_states(wanted)
        for tp, leadership in written.done.items():
            self._state.set_leadership(tp, leadership)
            outcomes[tp] = leadership
        if written.conflicting:
            await self._settle_conflicts(written.conflicting, wanted, outcomes)
        for tp, error in written.failed.items():
            log.error("The ISR of %s could not be written: %s", tp, error)
            outcomes[tp] = ErrorCode.UNKNOWN_SERVER_ERROR

    async def _settle_conflicts(
        self,
        conflicting: Sequence[TopicPartition],
        wanted: dict[TopicPartition, LeaderAndIsr],
        outcomes: Outcomes,
    ) -> None:
        """Read again what is in the tree: the answer to a write that was made may have been lost.

        Otherwise the leader and this broker would disagree on the partition epoch until the next
        leader epoch, and every later ISR of the partition would be refused.
        """
        for tp, leadership in (await self._tree.states(conflicting)).items():
            self._state.set_leadership(tp, leadership)
            wish = wanted[tp]
            if leadership == wish._replace(partition_epoch=wish.partition_epoch + 1):
                outcomes[tp] = leadership
        for tp in conflicting:
            outcomes.setdefault(tp, ErrorCode.INVALID_UPDATE_VERSION)

    def _response(
        self, outcomes: Outcomes, unknown: list[AlteredTopicResult], version: int
    ) -> AlterPartitionResponse:
        topics: dict[str, list[AlteredPartitionResult]] = {}
        for tp, outcome in outcomes.items():
            topics.setdefault(tp.topic, []).append(_result(tp.partition, outcome))
        by_id = version >= FIRST_VERSION_WITH_IDS
        return AlterPartitionResponse(
            topics=[
                *unknown,
                *(
                    AlteredTopicResult(
                        topic_id=self._state.topics[name].topic_id, partitions=partitions
                    )
                    if by_id
                    else AlteredTopicResult(topic_name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ),
            ]
        )


def _result(index: int, outcome: LeaderAndIsr | ErrorCode) -> AlteredPartitionResult:
    if isinstance(outcome, ErrorCode):
        return AlteredPartitionResult(partition_index=index, error_code=outcome)
    return AlteredPartitionResult(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=int(outcome.recovering),
        partition_epoch=outcome.partition_epoch,
    )


def _unknown_topic(topic_id: bytes, partitions: Sequence[AlteredPartition]) -> AlteredTopicResult:
    return AlteredTopicResult(
        topic_id=topic_id,
        partitions=[
            AlteredPartitionResult(
                partition_index=one.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for one in partitions
        ],
    )
