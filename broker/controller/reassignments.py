"""Partitions move to other brokers (KIP-455), and the old way by /admin/reassign_partitions.

For a partition with the original replicas O, and the target T:

* U. Write the replicas T + O, those of T - O as added and those of O - T as removed, first to the
  tree and then to memory, so that the next controller continues from here. Replicas that an earlier
  reassignment added, and this one does not, are stopped and deleted.
* A. While not all of T are in sync: raise the leader epoch, tell T + O (replicas that are added as
  new ones); the leader then expands the ISR by itself (AlterPartition), which leads to B.
* B. When they are: replicas that were added become Online; the replicas are T in memory; a leader
  out of T is elected, or the same one gets a new epoch, so that it lets nobody else into the ISR;
  removed replicas leave the ISR, are stopped and deleted; then T is written to the tree, as the
  last step, because nothing else there remembers O; every broker gets the metadata.

The topic is not deleted meanwhile. After each end of a reassignment its deletion may go on.

Source: `KafkaController.onPartitionReassignment` and what it calls (3.9).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.replica_assignment import ReplicaAssignment, without
from broker.controller.cluster_state import ControllerState, Replica, ReplicaState
from broker.controller.controller_tree import ControllerTree
from broker.controller.elections import Strategy
from broker.controller.fenced_store import ControllerMoved
from broker.controller.leader_elections import PartitionStates
from broker.controller.reassignment_rules import (
    check_size,
    check_target,
    is_complete,
    reassignment,
)
from broker.controller.replica_transitions import ReplicaStates
from broker.controller.sending import Sending
from broker.controller.topic_deletions import ClusterTopicDeletions
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition

log = logging.getLogger(__name__)

Results = dict[TopicPartition, KafkaError | None]
Targets = Mapping[TopicPartition, tuple[int, ...] | None]
"""Partition to its wanted replicas; None: take back what is under way."""


class Reassignments:
    """See the module."""

    def __init__(
        self,
        *,
        state: ControllerState,
        tree: ControllerTree,
        sending: Sending,
        partitions: PartitionStates,
        replicas: ReplicaStates,
        deletions: ClusterTopicDeletions,
    ) -> None:
        self._state = state
        self._tree = tree
        self._sending = sending
        self._partitions = partitions
        self._replicas = replicas
        self._deletions = deletions

    # ------------------------------------------------------------------ who asks

    async def ask(self, targets: Targets, *, may_resize: bool = True) -> Results:
        """Begin reassignments, or take them back (AlterPartitionReassignments).

        They take the place of those that are under way, whoever asked for them. `may_resize`:
        whether the number of replicas may change (KIP-860).
        """
        results: Results = {}
        begun: dict[TopicPartition, ReplicaAssignment] = {}
        for tp, target in targets.items():
            current = self._state.assignment(tp)
            try:
                if target is not None:
                    check_target(current, target, self._state.live_brokers())
                    if not may_resize:
                        check_size(current, target)
            except KafkaError as error:
                results[tp] = error.with_traceback(None)
                continue
            wanted = reassignment(current, target)
            if wanted is None:
                results[tp] = _nothing_to_cancel()
            else:
                begun[tp] = wanted
        await self._forget_in_tree(lambda tp, _: tp in begun)
        return results | await self._begin(begun)

    async def ask_by_tree(self) -> Collection[TopicPartition]:
        """Begin the reassignments in /admin/reassign_partitions; return those begun or done.

        The refused ones are removed from the node.
        """
        targets = await self._tree.reassignment()
        if targets is None:
            return ()
        begun = {
            tp: self._state.assignment(tp).reassigned_to(target) for tp, target in targets.items()
        }
        results = await self._begin(begun)
        refused = {tp: error for tp, error in results.items() if error is not None}
        if refused or not targets:
            log.warning("Refused reassignments by the metadata tree: %s", refused)
            await self._forget_in_tree(lambda tp, _: tp in refused)
        return [tp for tp in results if tp not in refused]

    async def resume(
        self, wanted: Callable[[TopicPartition, ReplicaAssignment], bool] = lambda *_: True
    ) -> None:
        """Go on with those under way that `wanted` says yes to: a broker or a controller is new."""
        for tp in list(self._state.reassigning):
            assignment = self._state.assignment(tp)
            if wanted(tp, assignment):
                await self._go_on_or_log(tp, assignment)

    async def isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """Finish those whose target replicas are in sync now."""
        for tp in partitions:
            if tp in self._state.reassigning:
                assignment = self._state.assignment(tp)
                if await self._is_complete(tp, assignment):
                    await self._go_on_or_log(tp, assignment)

    async def _begin(self, begun: Mapping[TopicPartition, ReplicaAssignment]) -> Results:
        results: Results = {}
        for tp, assignment in begun.items():
            if tp.topic in self._state.to_delete or not self._state.assignment(tp).replicas:
                results[tp] = KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
                )
                continue
            try:
                await self._go_on(tp, assignment)
                results[tp] = None
            except MetadataStoreError as error:
                log.error("The reassignment of %s failed: %s", tp, error)
                results[tp] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return results

    async def _go_on_or_log(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        try:
            await self._go_on(tp, assignment)
        except MetadataStoreError as error:
            log.error("The reassignment of %s cannot go on: %s", tp, error)

    # ------------------------------------------------------------------ the phases

    async def _go_on(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        self._deletions.mark_ineligible((tp.topic,))
        await self._store_wish(tp, assignment)
        if await self._is_complete(tp, assignment):
            await self._finish(tp, assignment)
        else:
            await self._new_epoch(tp)  # A: tells T + O
            added = [Replica(tp, broker_id) for broker_id in assignment.adding]
            for replica in added:
                if self._state.replica_state(replica) is ReplicaState.NON_EXISTENT:
                    await self._replicas.move((replica,), ReplicaState.NEW)

    async def _store_wish(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        """U."""
        current = self._state.assignment(tp)
        if current != assignment:
            await self._write(tp, assignment)
            self._state.set_assignment(tp, assignment)
            unneeded = without(current.replicas, assignment.replicas)
            await self._stop(tp, unneeded)
        self._state.reassigning[tp] = None

    async def _finish(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        """B."""
        state = self._state
        added = [Replica(tp, broker_id) for broker_id in assignment.adding]
        await self._replicas.move(added, ReplicaState.ONLINE)
        done = ReplicaAssignment(assignment.target)
        state.set_assignment(tp, done)
        await self._settle_leader(tp, done)
        await self._stop(tp, assignment.removing)
        await self._write(tp, done)
        await self._forget_in_tree(lambda one, target: one == tp and target == done.replicas)
        state.reassigning.pop(tp, None)
        await self._sending.metadata(state.brokers, (tp,))
        log.info("The replicas of %s are %s now", tp, done.replicas)
        await self._deletions.resume((tp.topic,))

    async def _settle_leader(self, tp: TopicPartition, done: ReplicaAssignment) -> None:
        leadership = self._state.leadership(tp)
        leader = None if leadership is None else leadership.leader
        if leader is not None and leader in done.replicas and self._state.is_online(leader, tp):
            await self._new_epoch(tp)
        else:
            await self._partitions.to_online((tp,), Strategy.REASSIGNMENT)

    async def _stop(self, tp: TopicPartition, brokers: Iterable[int]) -> None:
        """Take replicas out of the ISR, stop and delete them. Nobody waits for their answers."""
        replicas = [Replica(tp, broker_id) for broker_id in brokers]
        for target in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        ):
            await self._replicas.move(replicas, target)

    async def _new_epoch(self, tp: TopicPartition) -> None:
        """Raise the leader epoch, so that the leader gets the new replicas, and tell them all."""
        if await self._raise_epoch(tp) is None:
            log.error("The leader epoch of %s could not be raised", tp)
            return
        assignment = self._state.assignment(tp)
        batch = self._sending.batch()
        batch.add_leadership(assignment.origin, tp, is_new=False)
        batch.add_leadership(assignment.adding, tp, is_new=True)
        await self._sending.send(batch)

    async def _raise_epoch(self, tp: TopicPartition) -> LeaderAndIsr | None:
        epoch = self._state.epoch
        while True:
            current = (await self._tree.states((tp,))).get(tp)
            if current is None:
                return None
            if current.controller_epoch > epoch:
                raise ControllerMoved(
                    f"a controller of the epoch {current.controller_epoch} has written {tp}"
                )
            wanted = current.led_by(current.leader)._replace(controller_epoch=epoch)
            written = await self._tree.update_states({tp: wanted})
            for error in written.failed.values():
                raise error
            if tp in written.done:
                self._state.set_leadership(tp, written.done[tp])
                return written.done[tp]

    # ------------------------------------------------------------------ the tree

    async def _is_complete(self, tp: TopicPartition, assignment: ReplicaAssignment) -> bool:
        if not assignment.is_being_reassigned:
            return True
        current = (await self._tree.states((tp,))).get(tp)
        return current is not None and is_complete(assignment, current.isr)

    async def _write(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        topic = self._state.topics[tp.topic]
        topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
        partitions = {**topic.assignments, tp.partition: assignment}
        await self._tree.set_assignment(tp.topic, topic_id, partitions)

    async def _forget_in_tree(
        self, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Remove from /admin/reassign_partitions, if it is there, what `is_over` says yes to."""
        targets = await self._tree.reassignment()
        if targets is None:
            return
        left = {tp: target for tp, target in targets.items() if not is_over(tp, target)}
        if len(left) != len(targets) or not left:
            await self._tree.write_reassignment(left)


def _nothing_to_cancel() -> KafkaError:
    return KafkaError(
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
    )
