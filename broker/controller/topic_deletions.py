"""Topics are deleted: on every broker that has a replica first, then in the tree.

1. The wish is a node in /admin/delete_topics. The topic is queued.
2. It is eligible unless a replica is offline or being moved (`mark_ineligible`). A broker that
   comes and a reassignment that ends resume the deletion.
3. Its partitions become NonExistent, brokers get the leader -2 for them, and its replicas are
   stopped, then deleted: DeletionStarted. Those that are offline become DeletionIneligible.
4. Answers make replicas DeletionSuccessful or DeletionIneligible. When all are successful the
   topic's nodes are removed, and the wish. When none is under way and some are ineligible, these
   become Offline, so that the next attempt may begin.

With `delete.topic.enable` off wishes are removed and nothing else is done.

Source: `kafka.controller.TopicDeletionManager` (3.9).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from broker.cluster.tree_values import deletion_path
from broker.controller.cluster_state import (
    ControllerState,
    PartitionStage,
    Replica,
    ReplicaState,
    TopicState,
)
from broker.controller.controller_tree import ControllerTree
from broker.controller.leader_elections import PartitionStates
from broker.controller.replica_transitions import ReplicaStates
from broker.controller.sending import Sending
from storage.waits import PAUSE

log = logging.getLogger(__name__)


class ClusterTopicDeletions:
    """See the module."""

    def __init__(
        self,
        *,
        state: ControllerState,
        tree: ControllerTree,
        sending: Sending,
        partitions: PartitionStates,
        replicas: ReplicaStates,
        enabled: Callable[[], bool],
    ) -> None:
        self._state = state
        self._tree = tree
        self._sending = sending
        self._partitions = partitions
        self._replicas = replicas
        self._enabled = enabled

    async def load(self) -> None:
        """Find out at the beginning of a term what is to be deleted, and what of it cannot be."""
        state = self._state
        wished = await self._tree.topics_to_delete()
        if not self._enabled():
            await self._tree.store.delete_all(deletion_path(name) for name in wished)
            return
        state.queue_deletion(wished)
        moved = {tp.topic for tp in state.reassigning}
        for name in wished:
            topic = state.topics.get(name)
            if topic is not None and (name in moved or self._has_offline_replica(topic)):
                state.deletion_ineligible.add(name)
            await PAUSE

    def _has_offline_replica(self, topic: TopicState) -> bool:
        return not all(
            self._state.is_online(replica.broker_id, replica.tp) for replica in topic.replicas()
        )

    async def ask(self, topics: Collection[str]) -> None:
        """Delete topics as soon as possible. Those that do not exist are forgotten."""
        state = self._state
        unknown = [name for name in topics if name not in state.topics]
        if unknown:
            log.warning("Ignoring the deletion of topics that do not exist: %s", unknown)
            await self._tree.store.delete_all(deletion_path(name) for name in unknown)
        known = [name for name in topics if name in state.topics]
        if not self._enabled():
            await self._tree.store.delete_all(deletion_path(name) for name in known)
            return
        if not known:
            return
        state.queue_deletion(known)
        moved = {tp.topic for tp in state.reassigning}
        self.mark_ineligible([name for name in known if name in moved])
        await self.go_on()

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Do not delete these topics for now, if they are queued."""
        self._state.deletion_ineligible.update(
            name for name in topics if name in self._state.to_delete
        )

    async def resume(self, topics: Iterable[str]) -> None:
        """Try again to delete topics, because the obstacle may be gone."""
        queued = [name for name in topics if name in self._state.to_delete]
        if queued:
            self._state.deletion_ineligible.difference_update(queued)
            await self.go_on()

    async def failed(self, replicas: Iterable[Replica]) -> None:
        """Replicas could not be deleted."""
        queued = [replica for replica in replicas if replica.tp.topic in self._state.to_delete]
        if queued:
            await self._replicas.move(queued, ReplicaState.DELETION_INELIGIBLE)
            self.mark_ineligible({replica.tp.topic for replica in queued})
            await self.go_on()

    async def succeeded(self, replicas: Iterable[Replica]) -> None:
        """Replicas were deleted."""
        queued = [replica for replica in replicas if replica.tp.topic in self._state.to_delete]
        await self._replicas.move(queued, ReplicaState.DELETION_SUCCESSFUL)
        await self.go_on()

    async def go_on(self) -> None:
        """Do what can be done for every queued topic: end it, make it ready again, begin it."""
        state = self._state
        if not self._enabled():
            return
        retry: list[Replica] = []
        begin: list[str] = []
        for name in list(state.to_delete):
            topic = state.topics.get(name)
            if topic is None:  # nothing but the wish, left over
                await self._tree.delete_topic(name)
                state.remove_topic(name)
                continue
            states = {state.replica_state(replica) for replica in topic.replicas()}
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic)
                continue
            if ReplicaState.DELETION_STARTED not in states:
                if ReplicaState.DELETION_INELIGIBLE in states:
                    retry += state.replicas_in(name, ReplicaState.DELETION_INELIGIBLE)
                if name not in state.deletion_ineligible:
                    begin.append(name)
            await PAUSE
        await self._replicas.move(retry, ReplicaState.OFFLINE)
        if begin:
            await self._begin(begin)

    async def _complete(self, topic: TopicState) -> None:
        await self._replicas.move(list(topic.replicas()), ReplicaState.NON_EXISTENT)
        await self._tree.delete_topic(topic.name)
        self._state.remove_topic(topic.name)
        log.info("Deleted topic %s", topic.name)

    async def _begin(self, topics: Sequence[str]) -> None:
        state = self._state
        log.info("Deleting topics %s", ", ".join(topics))
        fresh = [
            tp
            for name in topics
            if name not in state.deletion_started
            for tp in state.topics[name].partitions()
        ]
        await self._partitions.move(fresh, PartitionStage.OFFLINE)
        await self._partitions.move(fresh, PartitionStage.NON_EXISTENT)
        state.deletion_started.update(topics)  # after the states, so that these are counted right
        await self._sending.metadata(
            state.brokers, [tp for name in topics for tp in state.topics[name].partitions()]
        )
        await self._delete_replicas(topics)

    async def _delete_replicas(self, topics: Sequence[str]) -> None:
        state = self._state
        dead: list[Replica] = []
        alive: list[Replica] = []
        ineligible: set[str] = set()
        for name in topics:
            for replica in state.topics[name].replicas():
                if not state.is_online(replica.broker_id, replica.tp):
                    dead.append(replica)
                    ineligible.add(name)
                elif state.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                    alive.append(replica)
                await PAUSE
        await self._replicas.move(dead, ReplicaState.DELETION_INELIGIBLE)
        await self._replicas.move(alive, ReplicaState.OFFLINE)
        await self._replicas.move(alive, ReplicaState.DELETION_STARTED)
        self.mark_ineligible(ineligible)
