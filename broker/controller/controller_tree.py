"""The controller's reads of the tree, and its writes, through a `FencedStore`.

A node that cannot be read is left out, with an error in the log.

Sources: `kafka.zk.KafkaZkClient` (3.9): `updateLeaderAndIsr`, `createTopicPartitionStatesRaw`.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeExistsError,
    NodeMissingError,
    Put,
    VersionMismatchError,
)
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import (
    BROKER_IDS,
    DELETE_TOPICS,
    FEATURES,
    PREFERRED_ELECTION,
    PRODUCER_ID_BLOCK,
    REASSIGN_PARTITIONS,
    TOPICS,
    BadValueError,
    TopicAssignment,
    broker_path,
    decode_broker,
    decode_config,
    decode_leader_and_isr,
    decode_partitions,
    decode_producer_id_block,
    decode_reassignment,
    decode_topic,
    deletion_path,
    encode_assignment,
    encode_features,
    encode_leader_and_isr,
    encode_producer_id_block,
    encode_reassignment,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.controller.cluster_state import LiveBroker
from broker.controller.fenced_store import AT_ONCE, FencedStore
from protocol.types import TopicPartition
from storage.waits import PAUSE

log = logging.getLogger(__name__)
T = TypeVar("T")

_LAST_PRODUCER_ID: Final = (1 << 63) - 1
PRODUCER_ID_BLOCK_SIZE: Final = 1000


@dataclass(slots=True)
class StatesWritten:
    """The outcomes of changes of partition states."""

    done: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    """The states in the tree now, each with its new partition epoch."""
    conflicting: list[TopicPartition] = field(default_factory=list)
    """Changed meanwhile by their leaders, or by this write, whose answer was lost: read again."""
    failed: dict[TopicPartition, MetadataStoreError] = field(default_factory=dict)


class ControllerTree:
    """See the module."""

    def __init__(self, store: FencedStore) -> None:
        self.store = store

    # ------------------------------------------------------------------ reading

    async def brokers(self) -> dict[int, LiveBroker]:
        """All registered brokers."""
        ids = sorted(
            int(name) for name in await self.store.children(BROKER_IDS) if name.isdecimal()
        )
        nodes = await self.store.get_many([broker_path(broker_id) for broker_id in ids])
        found = {}
        for broker_id, node in zip(ids, nodes, strict=True):
            if node is not None and (image := _readable(decode_broker, broker_id, node.value)):
                found[broker_id] = LiveBroker(image, node.created)
        return found

    async def topics(self) -> list[str]:
        """The names of all topics."""
        return await self.store.children(TOPICS)

    async def assignments(self, names: Sequence[str]) -> dict[str, TopicAssignment]:
        """The nodes of those topics that exist."""
        nodes = await self.store.get_many([topic_path(name) for name in names])
        found = {}
        for name, node in zip(names, nodes, strict=True):
            if node is not None and (one := _readable(decode_topic, name, node.value)):
                found[name] = one
            await PAUSE
        return found

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The state of each partition that has a state node."""
        found: dict[TopicPartition, LeaderAndIsr] = {}
        for start in range(0, len(partitions), AT_ONCE):
            known: dict[tuple[bytes, int], LeaderAndIsr] = {}  # most are one of few
            some = partitions[start : start + AT_ONCE]
            paths = [partition_state_path(tp.topic, tp.partition) for tp in some]
            for tp, path, node in zip(some, paths, await self.store.get_many(paths), strict=True):
                if node is not None:
                    key = node.value, node.version
                    state = known.get(key) or _readable(decode_leader_and_isr, path, *key)
                    if state is not None:
                        known[key] = found[tp] = state
                await PAUSE
        return found

    async def partition_numbers(self, topic: str) -> list[int]:
        """The partitions of a topic that have nodes."""
        names = await self.store.children(f"{topic_path(topic)}/partitions")
        return [int(name) for name in names if name.isdecimal()]

    async def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """The topics' own configs; none for one whose node cannot be read."""
        wanted = list(names)
        nodes = await self.store.get_many([topic_config_path(name) for name in wanted])
        found: dict[str, dict[str, str]] = {}
        for name, node in zip(wanted, nodes, strict=True):
            path = topic_config_path(name)
            own = None if node is None else _readable(decode_config, path, node.value)
            found[name] = own or {}
        return found

    async def notified(self, root: str, decode: Callable[[str, bytes], T]) -> dict[str, T | None]:
        """The values of the nodes below `root`, by path; None for one that cannot be read."""
        paths = [f"{root}/{name}" for name in await self.store.children(root)]
        nodes = await self.store.get_many(paths)
        return {
            path: None if node is None else _readable(decode, path, node.value)
            for path, node in zip(paths, nodes, strict=True)
        }

    async def topics_to_delete(self) -> list[str]:
        """The topics with a node that wants their deletion."""
        return await self.store.children(DELETE_TOPICS)

    async def reassignment(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """The targets in /admin/reassign_partitions; None if there is no such node."""
        node = await self.store.get(REASSIGN_PARTITIONS)
        return None if node is None else _readable(decode_reassignment, node.value) or {}

    async def preferred_election(self) -> list[TopicPartition] | None:
        """The partitions in /admin/preferred_replica_election; None if there is no such node."""
        node = await self.store.get(PREFERRED_ELECTION)
        return (
            None
            if node is None
            else _readable(decode_partitions, PREFERRED_ELECTION, node.value) or []
        )

    # ------------------------------------------------------------------ writing

    async def create_states(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> StatesWritten:
        """Make state nodes. One that exists as wished counts as made."""
        partitions = list(states)
        topics = dict.fromkeys(tp.topic for tp in partitions)
        await self.store.apply_each([Create(f"{topic_path(name)}/partitions") for name in topics])
        await self.store.apply_each(
            [Create(f"{topic_path(tp.topic)}/partitions/{tp.partition}") for tp in partitions]
        )
        operations = []
        for tp, state in states.items():
            path = partition_state_path(tp.topic, tp.partition)
            operations.append(Create(path, encode_leader_and_isr(state)))
            await PAUSE
        written = StatesWritten()
        existing: list[TopicPartition] = []
        for tp, outcome in zip(partitions, await self.store.apply_each(operations), strict=True):
            if not isinstance(outcome, MetadataStoreError):
                written.done[tp] = states[tp]
                continue
            written.failed[tp] = outcome
            if isinstance(outcome, NodeExistsError):
                existing.append(tp)
            await PAUSE
        if existing:
            for tp, found in (await self.states(existing)).items():
                if found == states[tp]:
                    written.done[tp] = found
                    del written.failed[tp]
        return written

    async def update_states(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> StatesWritten:
        """Change state nodes whose versions are the states' partition epochs."""
        operations = []
        for tp, state in states.items():
            path = partition_state_path(tp.topic, tp.partition)
            operations.append(Put(path, encode_leader_and_isr(state), state.partition_epoch))
            await PAUSE
        written = StatesWritten()
        outcomes = await self.store.apply_each(operations)
        for (tp, state), outcome in zip(states.items(), outcomes, strict=True):
            if not isinstance(outcome, MetadataStoreError):
                written.done[tp] = state._replace(partition_epoch=outcome)
            elif isinstance(outcome, VersionMismatchError):
                written.conflicting.append(tp)
            else:
                written.failed[tp] = outcome
            await PAUSE
        return written

    async def set_assignment(
        self, topic: str, topic_id: bytes | None, partitions: Mapping[int, ReplicaAssignment]
    ) -> None:
        """Write a topic's node. Raises NodeMissingError."""
        await self.store.apply([Put(topic_path(topic), encode_assignment(topic_id, partitions))])

    async def delete_below(self, path: str) -> None:
        """Remove the nodes below `path`, which have none."""
        await self.store.delete_all(f"{path}/{n}" for n in await self.store.children(path))

    async def delete_topic(self, name: str) -> None:
        """Remove all nodes of a topic, at last the wish to delete it.

        Its partitions go first, each on its own: together they may be too much for one change.
        """
        below = [f"{topic_path(name)}/partitions/{n}" for n in await self.partition_numbers(name)]
        await self.store.delete_all(f"{path}/state" for path in below)
        await self.store.delete_all(below)
        for path in (topic_path(name), topic_config_path(name)):
            await self.store.apply([Delete(path, recursive=True)])
        await self.store.delete_all([deletion_path(name)])

    async def write_reassignment(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Replace what /admin/reassign_partitions asks for; with nothing remove it."""
        if not targets:
            await self.store.delete_all([REASSIGN_PARTITIONS])
            return
        value = encode_reassignment(targets)
        try:
            await self.store.apply([Put(REASSIGN_PARTITIONS, value)])
        except NodeMissingError:
            await self.store.apply([Create(REASSIGN_PARTITIONS, value)])

    async def ensure_features(self) -> None:
        """Make /feature, without any, as Kafka's controller does."""
        if await self.store.get(FEATURES) is None:
            try:
                await self.store.apply([Create(FEATURES, encode_features({}))])
            except NodeExistsError:
                return

    async def allocate_producer_ids(self, broker_id: int) -> tuple[int, int]:
        """Take a block of ids for a broker; return the first and how many.

        Raises ControllerMoved, and MetadataStoreError when all ids are used up.
        """
        while True:
            node = await self.store.get(PRODUCER_ID_BLOCK)
            first = 0 if node is None else decode_producer_id_block(node.value) + 1
            last = first + PRODUCER_ID_BLOCK_SIZE - 1
            if last > _LAST_PRODUCER_ID:
                raise MetadataStoreError(PRODUCER_ID_BLOCK, "all producer ids are used up")
            value = encode_producer_id_block(broker_id, first, last)
            write = (
                Create(PRODUCER_ID_BLOCK, value)
                if node is None
                else Put(PRODUCER_ID_BLOCK, value, node.version)
            )
            try:
                await self.store.apply([write])
            except (NodeExistsError, VersionMismatchError):
                continue  # a lost answer: the block that it took, if it did, is never used
            return first, PRODUCER_ID_BLOCK_SIZE


def _readable(decode: Callable[..., T], *node: Any) -> T | None:
    try:
        return decode(*node)
    except BadValueError as error:
        log.error("Ignoring what cannot be read: %s", error)
        return None
