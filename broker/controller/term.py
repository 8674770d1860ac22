"""One term of this broker as controller: its state, its state machines, what it does about changes.

Made when the broker is elected and dropped when it resigns, so that nothing of a term that is over
can act in the next one. Its methods are handled one at a time (`events`). Each may end in
`ControllerMoved`.

Source: `KafkaController` (3.9), the handlers of its events.
"""

import logging
from collections.abc import Callable, Collection, Sequence

from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.tree_values import (
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    TopicAssignment,
    decode_log_dir_event,
    decode_partitions,
)
from broker.controller.alterations import Alterations
from broker.controller.asked_elections import AskedElections
from broker.controller.channels import Answered, Channels
from broker.controller.cluster_state import (
    ControllerState,
    LiveBroker,
    PartitionStage,
    Replica,
    ReplicaState,
    TopicState,
)
from broker.controller.controller_tree import ControllerTree
from broker.controller.elections import Strategy
from broker.controller.forgetting import forgotten
from broker.controller.leader_elections import ElectionFailed, PartitionStates
from broker.controller.reassignments import Reassignments
from broker.controller.replica_transitions import ReplicaStates
from broker.controller.request_batch import endpoint_of
from broker.controller.sending import Sending
from broker.controller.settings import ControllerSettings
from broker.controller.topic_deletions import ClusterTopicDeletions
from broker.world.uuids import NewUuid
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.leader_and_isr import LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaResponse
from protocol.types import ZERO_UUID, TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)

UNKNOWN_BROKER_EPOCH = -1
"""In a request of a broker that does not know its own epoch."""


class Term:
    """See the module."""

    def __init__(
        self,
        *,
        tree: ControllerTree,
        channels: Channels,
        answered: Answered,
        settings: Callable[[], ControllerSettings],
        new_uuid: NewUuid,
    ) -> None:
        """`answered` is called with each answer of a broker."""
        one = settings()
        self.state = ControllerState()
        self.state.epoch = tree.store.epoch
        self._tree = tree
        self._channels = channels
        self._answered = answered
        self._settings = settings
        self._new_uuid = new_uuid
        self._sending = Sending(self.state, one.broker_id, one.inter_broker_listener, channels.send)
        self.partitions = PartitionStates(
            self.state,
            tree,
            self._sending,
            unclean_by_default=lambda: settings().unclean_leader_election_enable,
        )
        self.replicas = ReplicaStates(self.state, tree, self._sending)
        self.deletions = ClusterTopicDeletions(
            state=self.state,
            tree=tree,
            sending=self._sending,
            partitions=self.partitions,
            replicas=self.replicas,
            enabled=lambda: settings().delete_topic_enable,
        )
        self.elections = AskedElections(self.state, tree, self.partitions, settings)
        self.alterations = Alterations(self.state, tree, self._sending)
        self.reassignments = Reassignments(
            state=self.state,
            tree=tree,
            sending=self._sending,
            partitions=self.partitions,
            replicas=self.replicas,
            deletions=self.deletions,
        )

    # ------------------------------------------------------------------ the beginning

    async def begin(self) -> None:
        """Read everything, inform the brokers, and continue the work of the last controller.

        The order is Kafka's: brokers must know each other before they learn the leaders.
        """
        tree, state = self._tree, self.state
        await tree.ensure_features()
        await tree.delete_below(LOG_DIR_EVENTS)
        await tree.delete_below(ISR_CHANGES)
        await self._load()
        await self.deletions.load()
        await self._sending.metadata(state.brokers)
        await self.replicas.start()
        await self.partitions.start()
        log.info("Ready to serve as the new controller with epoch %d", state.epoch)
        begun = await self.reassignments.ask_by_tree()
        await self.reassignments.resume(lambda tp, _: tp not in begun)
        await self.deletions.go_on()
        await self.elections.ask_by_tree()

    async def _load(self) -> None:
        state = self.state
        state.brokers = await self._tree.brokers()
        for broker in state.brokers.values():
            self._open_channel(broker)
        await self._add_topics(await self._tree.topics())
        partitions = await state.partitions_where(lambda *_: True)
        for tp, leadership in (await self._tree.states(partitions)).items():
            state.set_leadership(tp, leadership)
            await PAUSE
        log.info(
            "Brokers %s, %d topics, %d partitions",
            sorted(state.brokers),
            len(state.topics),
            len(partitions),
        )

    async def _add_topics(self, names: Sequence[str]) -> list[TopicPartition]:
        """Read topics that are new; return their partitions."""
        added: list[TopicPartition] = []
        for name, assignment in (await self._tree.assignments(names)).items():
            topic_id = assignment.topic_id or await self._identified(name, assignment)
            self.state.add_topic(name, topic_id)
            for index in assignment.replicas:
                tp = TopicPartition(name, index)
                one = assignment.of(index)
                self.state.set_assignment(tp, one)
                if one.is_being_reassigned:
                    self.state.reassigning[tp] = None
                added.append(tp)
            await PAUSE
        return added

    async def _identified(self, name: str, assignment: TopicAssignment) -> bytes:
        """Give an id to a topic from before topics had ids."""
        topic_id = self._new_uuid()
        partitions = {index: assignment.of(index) for index in assignment.replicas}
        try:
            await self._tree.set_assignment(name, topic_id, partitions)
        except MetadataStoreError as error:
            log.error("The topic %s could not be given an id: %s", name, error)
            return ZERO_UUID
        return topic_id

    def _open_channel(self, broker: LiveBroker) -> None:
        settings = self._settings()
        self._channels.open(
            broker.image.broker_id,
            endpoint_of(broker, settings.inter_broker_listener),
            settings.request_timeout_s,
            self._answered,
        )

    # ------------------------------------------------------------------ brokers

    async def brokers_changed(self) -> None:
        """Brokers have come, gone, or done both, or have other endpoints."""
        state = self.state
        known, found = state.brokers, await self._tree.brokers()
        new = sorted(found.keys() - known.keys())
        dead = sorted(known.keys() - found.keys())
        both = sorted(known.keys() & found.keys())
        bounced = [one for one in both if found[one].epoch > known[one].epoch]
        updated = [
            one for one in both if one not in bounced and found[one].image != known[one].image
        ]
        if new or dead or bounced:
            log.info(
                "Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s, "
                "all live brokers: %s",
                *(",".join(map(str, ids)) for ids in (new, dead, bounced, sorted(found))),
            )
        for broker_id in dead:
            self._channels.close(broker_id)
        for broker_id in (*new, *bounced):
            self._open_channel(found[broker_id])
        if new:
            known.update((one, found[one]) for one in new)
            await self._brokers_started(new)
        if bounced:
            for broker_id in bounced:
                del known[broker_id]
            await self._brokers_failed(bounced)
            known.update((one, found[one]) for one in bounced)
            await self._brokers_started(bounced)
        if dead:
            for broker_id in dead:
                del known[broker_id]
            await self._brokers_failed(dead)
        if updated:
            known.update((one, found[one]) for one in updated)
            await self._sending.metadata(state.brokers)

    async def _brokers_started(self, started: Sequence[int]) -> None:
        state = self.state
        for broker_id in started:
            state.offline_dirs.pop(broker_id, None)
        # Those that were there need no partition: none has changed. The new ones need all.
        await self._sending.metadata(state.brokers.keys() - set(started))
        await self._sending.metadata(started, await state.partitions_with_leaders())
        replicas = await state.replicas_on(started)
        await self.replicas.move(replicas, ReplicaState.ONLINE)
        await self.partitions.elect_where_needed()
        await self.reassignments.resume(
            lambda _, assignment: not set(assignment.target).isdisjoint(started)
        )
        topics: set[str] = set()
        for replica in replicas if state.to_delete else ():
            topics.add(replica.tp.topic)
            await PAUSE
        await self.deletions.resume(topics & state.to_delete.keys())
        await forgotten(replicas)

    async def _brokers_failed(self, failed: Sequence[int]) -> None:
        state = self.state
        for broker_id in failed:
            state.offline_dirs.pop(broker_id, None)
            state.shutting_down.discard(broker_id)
        replicas = await state.replicas_on(failed)
        await self._replicas_offline(replicas)
        await forgotten(replicas)

    async def _replicas_offline(self, replicas: Sequence[Replica]) -> None:
        """Replicas are gone: their brokers, or their log directories."""
        state = self.state
        deleted: list[Replica] = []
        others: list[Replica] = []
        for replica in replicas:
            (deleted if replica.tp.topic in state.to_delete else others).append(replica)
            await PAUSE
        headless = await state.partitions_with_offline_leader()
        await self.partitions.move(headless, PartitionStage.OFFLINE)
        outcomes = await self.partitions.elect_where_needed()
        await self.replicas.move(others, ReplicaState.OFFLINE)
        await self.deletions.failed(deleted)
        if not others and all(isinstance(one, ElectionFailed) for one in outcomes.values()):
            # Nothing has told the brokers which of them are gone.
            await self._sending.metadata(state.brokers)

    async def controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> Collection[TopicPartition]:
        """A broker is about to stop: move what it leads; return what it leads still.

        Raises KafkaError STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE.
        """
        state = self.state
        known = state.brokers.get(broker_id)
        if known is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist."
            )
        if broker_epoch not in (UNKNOWN_BROKER_EPOCH, known.epoch) and broker_epoch < known.epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Received controlled shutdown request from an old broker epoch {broker_epoch} "
                f"for broker {broker_id}. Current broker epoch is {known.epoch}.",
            )
        log.info("Shutting down broker %d", broker_id)
        state.shutting_down.add(broker_id)

        def is_shared(topic: TopicState, tp: TopicPartition) -> bool:
            replicas = topic.assignments[tp.partition].replicas
            return (
                broker_id in replicas
                and len(replicas) > 1
                and tp.partition in topic.leaderships
                and topic.name not in state.to_delete
            )

        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for tp in await state.partitions_where(is_shared):
            leadership = state.leadership(tp)
            is_led = leadership is not None and leadership.leader == broker_id
            (led if is_led else followed).append(tp)
        await self.partitions.to_online(led, Strategy.CONTROLLED_SHUTDOWN)
        batch = self._sending.batch()
        for tp in followed:
            batch.add_stop(broker_id, tp, delete=False)
        await self._sending.send(batch)
        await self.replicas.move([Replica(tp, broker_id) for tp in followed], ReplicaState.OFFLINE)
        return await state.partitions_led_by(broker_id)

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> tuple[int, int]:
        """Take a block of producer ids for a broker; return the first and how many.

        Raises KafkaError BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
        """
        known = self.state.brokers.get(broker_id)
        if known is None:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered."
            )
        if known.epoch != broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Broker {broker_id} is registered in the epoch {known.epoch}.",
            )
        return await self._tree.allocate_producer_ids(broker_id)

    # ------------------------------------------------------------------ topics

    async def topics_changed(self) -> None:
        """Topics have come, or gone without us."""
        state = self.state
        found = await self._tree.topics()
        here = set(found)
        for name in [name for name in state.topics if name not in here]:
            state.remove_topic(name)
        new = [name for name in found if name not in state.topics]
        if new:
            log.info("New topics: %s", ", ".join(new))
            await self._partitions_made(await self._add_topics(new))

    async def topic_nodes_changed(self, names: Sequence[str]) -> None:
        """The nodes of topics have changed: partitions were added, unless it was us."""
        state = self.state
        for name, assignment in (await self._tree.assignments(names)).items():
            known = state.topics.get(name)
            if known is None:
                continue
            added = [index for index in assignment.replicas if index not in known.assignments]
            if not added:
                continue
            if name in state.to_delete:
                await self._take_back_partitions(known, assignment)
                continue
            for index in added:
                state.set_assignment(TopicPartition(name, index), assignment.of(index))
            await self._partitions_made([TopicPartition(name, index) for index in added])

    async def _take_back_partitions(self, topic: TopicState, found: TopicAssignment) -> None:
        """Write the node of a topic that is being deleted as it was, without more partitions."""
        log.warning("Skipping new partitions of %s, which is being deleted", topic.name)
        kept = {
            index: topic.assignments[index]
            for index in found.replicas
            if index in topic.assignments
        }
        await self._tree.set_assignment(topic.name, topic.topic_id, kept)

    async def _partitions_made(self, partitions: Sequence[TopicPartition]) -> None:
        replicas = [
            Replica(tp, broker_id)
            for tp in partitions
            for broker_id in self.state.assignment(tp).replicas
        ]
        await self.partitions.move(partitions, PartitionStage.NEW)
        await self.replicas.move(replicas, ReplicaState.NEW)
        await self.partitions.to_online(partitions, Strategy.OFFLINE)
        await self.replicas.move(replicas, ReplicaState.ONLINE)

    async def deletions_asked(self) -> None:
        """There are wishes in /admin/delete_topics."""
        await self.deletions.ask(await self._tree.topics_to_delete())

    # ------------------------------------------------------------------ what brokers say

    async def isr_changes_noted(self) -> None:
        """Leaders of an older Kafka have written ISRs themselves."""
        notified = await self._tree.notified(ISR_CHANGES, decode_partitions)
        changed = dict.fromkeys(tp for some in notified.values() for tp in some or ())
        known = [tp for tp in changed if self.state.assignment(tp).replicas]
        for tp, leadership in (await self._tree.states(known)).items():
            self.state.set_leadership(tp, leadership)
        if known:
            await self._sending.metadata(self.state.brokers, known)
            await self.reassignments.isr_changed(known)
        await self._tree.store.delete_all(notified)

    async def log_dir_events_noted(self) -> None:
        """Log directories of brokers have failed: their answers will say which replicas are."""
        notified = await self._tree.notified(LOG_DIR_EVENTS, decode_log_dir_event)
        brokers = {one for one in notified.values() if one is not None}
        log.info("Handling log directory failure for brokers %s", sorted(brokers))
        await self.replicas.move(await self.state.replicas_on(brokers), ReplicaState.ONLINE)
        await self._tree.store.delete_all(notified)

    async def leadership_answered(self, broker_id: int, response: LeaderAndIsrResponse) -> None:
        """A broker has made its replicas leaders and followers, where their directories work."""
        state = self.state
        failed: set[TopicPartition] = set()
        works: set[TopicPartition] = set()
        for topic in response.topics:
            name = state.name_of(topic.topic_id)
            if name is None:
                continue
            for one in topic.partition_errors:
                tp = TopicPartition(name, one.partition_index)
                if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    failed.add(tp)
                elif one.error_code == ErrorCode.NONE:
                    works.add(tp)
        before = state.offline_dirs.get(broker_id, set())
        now = (before - works) | failed
        if now:
            state.offline_dirs[broker_id] = now
        else:
            state.offline_dirs.pop(broker_id, None)
        if now - before:
            log.info("Replicas on broker %d are offline: %s", broker_id, sorted(now - before))
            await self._replicas_offline([Replica(tp, broker_id) for tp in sorted(now - before)])

    async def deletion_answered(
        self, broker_id: int, asked: Collection[TopicPartition], response: StopReplicaResponse
    ) -> None:
        """A broker has deleted replicas of topics that are being deleted, or has failed to."""
        failed: list[Replica] = []
        done: list[Replica] = []
        for one in response.partition_errors:
            tp = TopicPartition(one.topic_name, one.partition_index)
            if tp in asked and tp.topic in self.state.deletion_started:
                good = response.error_code == one.error_code == ErrorCode.NONE
                (done if good else failed).append(Replica(tp, broker_id))
        await self.deletions.failed(failed)
        if done:
            await self.deletions.succeeded(done)
