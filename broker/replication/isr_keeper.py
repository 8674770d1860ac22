"""Keeps the ISRs of the partitions led here true: proposes changes to the controller.

Every half `replica.lag.time.max.ms` the `IsrKeeper` walks over the partitions, and each whose
followers lag proposes a smaller ISR. A partition itself proposes a larger one when a follower
fetches (`Partition.record_follower_fetch`). Proposals are gathered while a request is under way:
one AlterPartition at a time has all that wait, so a broker that lost a neighbour sends a few
requests for its thousand partitions and not a thousand.

If a request fails as a whole (no controller, another one, a stale broker epoch), the proposals that
wait `RETRY_S` later are sent. `isr` decides how an answer counts for a partition.

After `kafka.server.DefaultAlterPartitionManager` and `ReplicaManager.maybeShrinkIsr`.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from broker.peers.peer import PeerError
from broker.replication.isr import IsrAnswer, IsrOutcome, IsrStatistics
from broker.replication.partition import Partition
from broker.replication.partition_state import PendingIsr
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredPartitionResult,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
)
from protocol.types import ZERO_UUID, TopicPartition
from storage.clock import Clock
from storage.logging_limit import LoggingLimit
from storage.waits import PAUSE, Signal, Work, sleep

logger = logging.getLogger(__name__)

RETRY_S: Final = 0.05
"""Pause before a request that failed as a whole is sent again, as in Kafka."""

Alter = Callable[[AlterPartitionRequest], Work[AlterPartitionResponse]]


class IsrKeeper:
    """Sends the proposals of all partitions led here. Event loop only."""

    def __init__(
        self,
        *,
        alter: Alter,
        broker_id: int,
        broker_epoch: Callable[[], int],
        partitions: Callable[[], Iterable[Partition]],
        wake: Callable[[Partition], None],
        lag_time_s: float,
        clock: Clock,
        statistics: IsrStatistics | None = None,
    ) -> None:
        """`alter` asks the current controller and raises PeerError or KafkaError. `partitions` are
        all of this broker; `wake` has parked requests check one whose high watermark moved."""
        self._alter = alter
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._partitions = partitions
        self._wake_requests = wake
        self._period_s = lag_time_s / 2
        self._clock = clock
        self._waiting: dict[TopicPartition, tuple[Partition, PendingIsr]] = {}
        self._woken: Signal[None] = Signal()
        self._logging_limit = LoggingLimit(clock)
        self.statistics = IsrStatistics() if statistics is None else statistics

    def send(self, partition: Partition, isr: PendingIsr) -> None:
        """Have a proposal sent; one for the same partition that waits is replaced."""
        self._waiting[partition.topic_partition] = partition, isr
        self._woken.fire()

    async def run(self) -> None:
        """Look for replicas that lag and send proposals, until ended."""
        check_at = self._clock.monotonic() + self._period_s
        while True:
            now = self._clock.monotonic()
            if now >= check_at:
                check_at = now + self._period_s
                await self.shrink()
            if not self._waiting:
                self._woken = Signal()
                await self._woken.within(max(check_at - now, 0))
                continue
            if not await self._send_waiting():
                await sleep(RETRY_S)

    async def shrink(self) -> None:
        """Have every partition propose an ISR without the replicas that lag."""
        for partition in self._partitions():
            if partition.followers is not None:
                partition.shrink_isr()
            await PAUSE

    async def _send_waiting(self) -> bool:
        """Send what waits and take over the answer; return False if it is to be sent again."""
        sent, self._waiting = self._waiting, {}
        sent = {tp: one for tp, one in sent.items() if one[0].state.pending is one[1]}
        if not sent:
            return True
        failure = ""
        try:
            response = await self._alter(self._request(sent))
        except (PeerError, KafkaError) as error:
            failure = str(error)
        else:
            if response.error_code:
                failure = ErrorCode(response.error_code).name
        if failure:
            events = self._logging_limit.count_event()
            if events:
                logger.warning(
                    "The ISR of %d partitions is not changed yet: %s", len(sent), failure
                )
            for tp, proposal in sent.items():
                self._waiting.setdefault(tp, proposal)
            return False
        answers = _answers(response)
        again = False
        for tp, (partition, isr) in sent.items():
            answer = answers.get((partition.topic_id, tp.partition)) or answers.get(
                (tp.topic, tp.partition)
            )
            if answer is None:
                answer = IsrAnswer(error=ErrorCode.UNKNOWN_SERVER_ERROR)
            again |= self._settle(partition, isr, answer)
            await PAUSE
        return not again

    def _settle(self, partition: Partition, isr: PendingIsr, answer: IsrAnswer) -> bool:
        """Take over an answer for a partition; return whether the proposal is to be sent again."""
        outcome, moved = partition.isr_answered(isr, answer)
        tp = partition.topic_partition
        if outcome is IsrOutcome.CONFIRMED:
            if isr.shrinks:
                self.statistics.shrinks += 1
            else:
                self.statistics.expands += 1
            logger.info("ISR of %s is now %s", tp, list(partition.isr))
        else:
            self.statistics.failed_updates += 1
            logger.info(
                "ISR %s of %s was not taken: %s, %s",
                list(isr.isr),
                tp,
                outcome.name,
                answer.error,
            )
        if moved or isr.shrinks:
            self._wake_requests(partition)
        if outcome is IsrOutcome.RETRY:
            self._waiting.setdefault(tp, (partition, isr))
            return True
        return False

    def _request(
        self, sent: dict[TopicPartition, tuple[Partition, PendingIsr]]
    ) -> AlterPartitionRequest:
        """The request; fields that only some versions have are always filled in."""
        altered: dict[str, list[AlteredPartition]] = {}
        topic_ids: dict[str, bytes] = {}
        for tp, (partition, isr) in sent.items():
            image = partition.state.image
            topic_ids[tp.topic] = partition.topic_id
            altered.setdefault(tp.topic, []).append(
                AlteredPartition(
                    partition_index=tp.partition,
                    leader_epoch=image.leader_epoch,
                    new_isr=list(isr.isr),
                    # Without KRaft, Kafka's controllers do not know the epochs that replicas
                    # fetched with, and its leaders send none.
                    new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr.isr],
                    partition_epoch=image.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                AlteredTopic(topic_name=name, topic_id=topic_ids[name], partitions=partitions)
                for name, partitions in altered.items()
            ],
        )


def _answers(response: AlterPartitionResponse) -> dict[tuple[str | bytes, int], IsrAnswer]:
    answers: dict[tuple[str | bytes, int], IsrAnswer] = {}
    for topic in response.topics:
        name = topic.topic_name if topic.topic_id == ZERO_UUID else topic.topic_id
        for found in topic.partitions:
            answers[name, found.partition_index] = _answer(found)
    return answers


def _answer(found: AlteredPartitionResult) -> IsrAnswer:
    return IsrAnswer(
        error=found.error_code,
        leader_epoch=found.leader_epoch,
        isr=tuple(found.isr),
        partition_epoch=found.partition_epoch,
    )
