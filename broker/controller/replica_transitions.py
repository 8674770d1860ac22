"""Replicas change their states: made, started, stopped, deleted.

* New: the broker gets a LeaderAndIsr for a new replica. A replica that leads cannot be new.
* Online: the broker gets a LeaderAndIsr, unless it has just got one for the new replica.
* Offline: the broker gets a StopReplica, and the others a LeaderAndIsr, because the replica leaves
  the ISR. The last one in sync stays there, with the leader -1: only it is known to have all
  records.
* DeletionStarted: the broker gets a StopReplica that deletes.
* DeletionSuccessful, DeletionIneligible: the replica is deleted, or cannot be deleted now.
* NonExistent: the replica is no longer one of the partition's.

An illegal transition is logged and not made.

Source: `kafka.controller.ReplicaStateMachine` (3.9).
"""

import logging
from collections.abc import Iterable, Sequence

from broker.cluster.image import NO_LEADER
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.cluster_state import REPLICA_FROM, ControllerState, Replica, ReplicaState
from broker.controller.controller_tree import ControllerTree
from broker.controller.forgetting import forgotten
from broker.controller.request_batch import RequestBatch
from broker.controller.sending import Sending
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)


class ReplicaStates:
    """See the module."""

    def __init__(self, state: ControllerState, tree: ControllerTree, sending: Sending) -> None:
        self._state = state
        self._tree = tree
        self._sending = sending

    async def start(self) -> None:
        """Find out the states at the beginning of a term, and tell all replicas who leads.

        Replicas that are not online cannot be deleted for now, and leave the ISR.
        """
        online: list[Replica] = []
        offline: list[Replica] = []
        for topic in list(self._state.topics.values()):
            for replica in topic.replicas():
                if self._state.is_online(replica.broker_id, replica.tp):
                    self._state.set_replica_state(replica, ReplicaState.ONLINE)
                    online.append(replica)
                else:
                    self._state.set_replica_state(replica, ReplicaState.DELETION_INELIGIBLE)
                    offline.append(replica)
                await PAUSE
        await self.move(online, ReplicaState.ONLINE)
        await self.move(offline, ReplicaState.OFFLINE)
        await forgotten(online)
        await forgotten(offline)

    async def move(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        """Move replicas to a state, and tell the brokers."""
        by_broker: dict[int, list[Replica]] = {}
        for replica in replicas:
            current = self._state.replica_state(replica)
            if current in REPLICA_FROM[target]:
                by_broker.setdefault(replica.broker_id, []).append(replica)
            else:
                log.error("%s cannot become %s: it is %s", replica, target.name, current.name)
            await PAUSE
        if not by_broker:
            return
        batch = self._sending.batch()
        for broker_id, some in by_broker.items():
            match target:
                case ReplicaState.NEW:
                    await self._make(some, batch)
                case ReplicaState.ONLINE:
                    await self._start(some, batch)
                case ReplicaState.OFFLINE:
                    await self._stop(broker_id, some, batch)
                case ReplicaState.NON_EXISTENT:
                    await self._remove(some)
                case _:
                    await self._note(some, target, batch)
        await self._sending.send(batch)

    async def _make(self, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        for replica in replicas:
            leadership = self._state.leadership(replica.tp)
            if leadership is not None:
                if leadership.leader == replica.broker_id:
                    log.error("%s cannot be new: it leads", replica)
                    continue
                batch.add_leadership((replica.broker_id,), replica.tp, is_new=True)
            self._state.set_replica_state(replica, ReplicaState.NEW)
            await PAUSE

    async def _start(self, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        for replica in replicas:
            if self._state.replica_state(replica) is ReplicaState.NEW:
                assignment = self._state.assignment(replica.tp)
                if replica.broker_id not in assignment.replicas:
                    log.error("Adding %s, which %s lacks", replica, assignment)
                    added = (*assignment.replicas, replica.broker_id)
                    self._state.set_assignment(replica.tp, assignment._replace(replicas=added))
            elif self._state.leadership(replica.tp) is not None:
                batch.add_leadership((replica.broker_id,), replica.tp, is_new=False)
            self._state.set_replica_state(replica, ReplicaState.ONLINE)
            await PAUSE

    async def _stop(self, broker_id: int, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        state = self._state
        led: list[TopicPartition] = []
        for replica in replicas:
            batch.add_stop(broker_id, replica.tp, delete=False)
            if state.leadership(replica.tp) is not None:
                led.append(replica.tp)
            else:
                batch.add_metadata(state.brokers, (replica.tp,))
                state.set_replica_state(replica, ReplicaState.OFFLINE)
            await PAUSE
        for tp in await self._remove_from_isr(broker_id, led):
            if tp.topic not in state.to_delete:
                others = [one for one in state.assignment(tp).replicas if one != broker_id]
                batch.add_leadership(others, tp, is_new=False)
            state.set_replica_state(Replica(tp, broker_id), ReplicaState.OFFLINE)
            await PAUSE

    async def _remove(self, replicas: Sequence[Replica]) -> None:
        for replica in replicas:
            assignment = self._state.assignment(replica.tp).without_replica(replica.broker_id)
            self._state.set_assignment(replica.tp, assignment)
            self._state.set_replica_state(replica, ReplicaState.NON_EXISTENT)
            await PAUSE

    async def _note(
        self, replicas: Sequence[Replica], target: ReplicaState, batch: RequestBatch
    ) -> None:
        for replica in replicas:
            self._state.set_replica_state(replica, target)
            if target is ReplicaState.DELETION_STARTED:
                batch.add_stop(replica.broker_id, replica.tp, delete=True)
            await PAUSE

    # ------------------------------------------------------------------ the ISR

    async def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> list[TopicPartition]:
        """Take a broker out of ISRs; return the partitions whose ISR lacks it now."""
        done: list[TopicPartition] = []
        remaining = partitions
        while remaining:
            remaining = await self._remove_once(broker_id, remaining, done)
        return done

    async def _remove_once(
        self, broker_id: int, partitions: Sequence[TopicPartition], done: list[TopicPartition]
    ) -> list[TopicPartition]:
        state = self._state
        current = await self._tree.states(partitions)
        changed: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            found = current.get(tp)
            if found is None:
                if tp.topic not in state.to_delete:
                    log.error("%s has no state in the metadata tree", tp)
            elif found.controller_epoch > state.epoch:
                log.error(
                    "The state of %s was written by a later controller, of the epoch %d",
                    tp,
                    found.controller_epoch,
                )
            elif broker_id in found.isr:
                changed[tp] = without_replica(found, broker_id)._replace(
                    controller_epoch=state.epoch
                )
            else:
                state.set_leadership(tp, found._replace(controller_epoch=state.epoch))
                done.append(tp)
            await PAUSE
        written = await self._tree.update_states(changed)
        for tp, leadership in written.done.items():
            state.set_leadership(tp, leadership)
            done.append(tp)
        for tp, error in written.failed.items():
            log.error("Broker %d could not be taken out of the ISR of %s: %s", broker_id, tp, error)
        return written.conflicting


def without_replica(current: LeaderAndIsr, broker_id: int) -> LeaderAndIsr:
    """A replica leaves the ISR, and the leadership. The last one in sync stays in the ISR."""
    leader = NO_LEADER if current.leader == broker_id else current.leader
    if len(current.isr) == 1:
        return current.led_by(leader)
    return current.led_by(leader, tuple(one for one in current.isr if one != broker_id))
