"""The requests to the controller: each is an event of its queue.

On other brokers, and when the term ends before its turn, a request raises KafkaError
NOT_CONTROLLER.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.controller.elections import Strategy
from broker.controller.events import ControllerActivity, ControllerEvent, EventQueue
from broker.controller.reassignments import Results, Targets
from broker.controller.term import Term
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.types import TopicPartition
from storage.waits import Signal, Work

log = logging.getLogger(__name__)
T = TypeVar("T")

NEWEST_ALTER_PARTITION: Final = 3
_PREFERRED: Final = 0


class ControllerRequests:
    """See the module."""

    def __init__(self, events: EventQueue, term: Callable[[], Term | None]) -> None:
        """`term` returns this broker's; None while it is not the controller."""
        self._events = events
        self._term = term

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int = NEWEST_ALTER_PARTITION
    ) -> AlterPartitionResponse:
        """Change ISRs as their leader asks for. Raises KafkaError NOT_CONTROLLER."""
        answered: Signal[AlterPartitionResponse | KafkaError] = Signal()

        async def alter(term: Term) -> None:
            response, altered = await term.alterations.alter(request, version)
            answered.fire(response)
            await term.reassignments.isr_changed(altered)

        return await self._answer(ControllerActivity.ISR_CHANGE, alter, answered)

    async def controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> Collection[TopicPartition]:
        """Move what a broker leads before it stops; return what it leads still.

        Raises KafkaError NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE.
        """
        return await self._ask(
            ControllerActivity.CONTROLLED_SHUTDOWN,
            lambda term: term.controlled_shutdown(broker_id, broker_epoch),
        )

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> tuple[int, int]:
        """Take a block of producer ids; return the first and how many.

        Raises KafkaError NOT_CONTROLLER, BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
        """
        return await self._ask(
            ControllerActivity.IDLE,
            lambda term: term.allocate_producer_ids(broker_id, broker_epoch),
        )

    async def elect_leaders(
        self, kind: int, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of some partitions or, with None, of all.

        `kind` is as in ElectLeaders: 0 preferred, 1 unclean.
        Returns what came of each. Raises KafkaError NOT_CONTROLLER.
        """
        strategy = Strategy.PREFERRED if kind == _PREFERRED else Strategy.OFFLINE_UNCLEAN
        return await self._ask(
            ControllerActivity.MANUAL_LEADER_BALANCE,
            lambda term: term.elections.ask(strategy, partitions),
        )

    async def alter_reassignments(self, targets: Targets, *, may_resize: bool = True) -> Results:
        """Begin reassignments, or with None take them back. Raises KafkaError NOT_CONTROLLER.

        `may_resize`: whether the number of replicas may change (KIP-860).
        """
        return await self._ask(
            ControllerActivity.ALTER_PARTITION_REASSIGNMENT,
            lambda term: term.reassignments.ask(targets, may_resize=may_resize),
        )

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, ReplicaAssignment]:
        """The reassignments of `partitions`, or all. Raises KafkaError NOT_CONTROLLER."""

        async def listed(term: Term) -> Mapping[TopicPartition, ReplicaAssignment]:
            wanted = list(term.state.reassigning) if partitions is None else partitions
            found = {tp: term.state.assignment(tp) for tp in wanted}
            return {tp: one for tp, one in found.items() if one.is_being_reassigned}

        return await self._ask(ControllerActivity.LIST_PARTITION_REASSIGNMENT, listed)

    async def _ask(self, activity: ControllerActivity, handle: Callable[[Term], Work[T]]) -> T:
        """Have a request handled in its turn; return its result or raise its KafkaError."""
        answered: Signal[T | KafkaError] = Signal()

        async def run(term: Term) -> None:
            try:
                answered.fire(await handle(term))
            except KafkaError as error:
                answered.fire(error)
            except MetadataStoreError as error:
                log.error("A request could not be served: %s", error)
                answered.fire(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))

        return await self._answer(activity, run, answered)

    async def _answer(
        self,
        activity: ControllerActivity,
        handle: Callable[[Term], Work[None]],
        answered: Signal[T | KafkaError],
    ) -> T:
        """Queue `handle`, which fires `answered`; refused if the term ends before."""
        if self._term() is None:
            raise not_controller()

        async def run() -> None:
            term = self._term()
            if term is None:
                answered.fire(not_controller())
            else:
                await handle(term)

        self._events.put(
            ControllerEvent(activity, run, preempt=lambda: answered.fire(not_controller()))
        )
        outcome = await answered
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome


def not_controller() -> KafkaError:
    """The refusal of what only the controller does."""
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller.")
