"""Adopts partition directories of another broker that the metadata store does not know.

`scan` reads the log directories, `plan` decides, `take_over` does both and writes the store unless
it is a dry run. It opens no logs and changes none of their files.

Rules
1. A topic's id is the one in `partition.metadata`. If a KRaft Kafka's metadata log lies beside the
   logs and names the same id, the topic's partitions and configs come from it. A directory without
   an id (before Kafka 2.8) gets the id in the KRaft log, or else a new one.
2. A topic that the store knows under the same id stays as it is; missing partitions are added.
3. A topic that the store knows under another id is replaced if no directory has the store's id: the
   other broker has deleted the topic and made it again. Otherwise it is a conflict.
4. A conflict (directories of one topic with different ids, one partition twice, another id) is left
   out and reported; the other topics are adopted.
5. Partitions missing between those found (they lie on other brokers) are made here, empty. If more
   are missing than one CreateTopics may make, the highest number is rather a date or a year in the
   name of a foreign directory: the topic is a conflict (rule 4).
6. Producer ids continue at `FIRST_PRODUCER_ID`. Kafka counts its own from 0 and never learns which
   ids were handed out here. If both used the same ids and a directory went back and forth, batches
   of one producer would be taken for duplicates of another's and be lost.
7. Leader epochs need no rule: `Controller.lead` continues above those found in the logs.
8. A directory with a partition's name and only foreign files is left alone. An empty one counts, as
   a crash of the other broker may have left it.
9. Access rules, users and quotas in a KRaft Kafka's metadata log are taken, too (`adopted_access`).

Used by `broker.server` when its store is new, and by `broker.offline.adopt` (the `--adopt` mode).
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from broker.cluster.adopted_access import AccessVerdict, plan_access
from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.internal_topics import internal_topic
from broker.cluster.kraft_log import METADATA_DIRECTORY, KraftMetadata, read_kraft_metadata
from broker.cluster.metadata_store import Create, Delete, MetadataStore, Put, TreeOperation
from broker.cluster.topic_plan import MAX_PARTITIONS_PER_REQUEST, new_partition
from broker.cluster.tree_reader import read_topics
from broker.cluster.tree_values import (
    DELETE_TOPICS,
    PRODUCER_ID_BLOCK,
    decode_producer_id_block,
    encode_config,
    encode_partition_state,
    encode_producer_id_block,
    encode_topic,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.world.uuids import NewUuid
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.topic_config import TopicConfig
from protocol.types import uuid_to_text
from storage.directory_kind import is_partition
from storage.errors import CheckpointError
from storage.filesystem import FileSystem
from storage.log_dir import read_partition_metadata
from storage.paths import DirState, join, parse_partition_dir
from storage.waits import call

log = logging.getLogger(__name__)

FIRST_PRODUCER_ID: Final = 1 << 40
"""Far above any id that a Kafka has handed out, and far below the largest id."""

NO_CONTROLLER_EPOCH: Final = 0


class TopicAction(StrEnum):
    """The decision about a topic that was found."""

    ADOPTED = "adopted"
    GROWN = "partitions added"
    REPLACED = "replaced"
    KNOWN = "known already"
    CONFLICT = "conflict"


class ConfigOrigin(StrEnum):
    """The source of a topic's own configs."""

    KRAFT = "KRaft metadata log"
    INTERNAL = "defaults of the internal topic"
    STORE = "metadata store"
    NONE = "none found"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPartition:
    """One live partition directory."""

    directory: str
    topic_id: bytes | None


@dataclass(slots=True)
class FoundLogs:
    """The contents of the log directories."""

    topics: dict[str, dict[int, list[FoundPartition]]] = field(default_factory=dict)
    """Name to partition number to its directories: more than one is a conflict."""
    kraft: KraftMetadata | None = None
    foreign: bool = False
    """Whether a KRaft Kafka uses these directories too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVerdict:
    """The decision about one topic."""

    name: str
    action: TopicAction
    topic: TopicImage | None
    """The topic as it will be in the store; None for a conflict."""
    found: tuple[int, ...]
    """Partitions that have a directory."""
    config_source: ConfigOrigin
    reason: str = ""
    dropped_configs: tuple[str, ...] = ()
    """Configs of the other broker that this one does not know or accept."""

    @property
    def missing(self) -> tuple[int, ...]:
        """Partitions without a directory: they will be empty."""
        known = () if self.topic is None else self.topic.partitions
        found = frozenset(self.found)
        return tuple(index for index in known if index not in found)

    def as_log_line(self) -> tuple[int, str]:
        """Return (level, text) for the log of a broker that adopts at its start."""
        if self.topic is None:
            return logging.ERROR, f"Left out topic {self.name}: {self.reason}"
        text = (
            f"Took over topic {self.name} with {len(self.topic.partitions)} partitions found in the"
            f" log directories; its own configs: {self.config_source}"
        )
        if self.dropped_configs:
            text += f"; not taken: {', '.join(self.dropped_configs)}"
        return logging.WARNING if self.config_source is ConfigOrigin.NONE else logging.INFO, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The decisions about topics and access."""

    topics: list[TopicVerdict]
    access: AccessVerdict


def scan(fs: FileSystem, log_dirs: Iterable[str], metadata_log_dir: str | None = None) -> FoundLogs:
    """Read the names and ids of all live partition directories. Raises OSError.

    The metadata log lies in `metadata_log_dir`, or in one of `log_dirs`.
    """
    result = FoundLogs()
    for log_dir in log_dirs:
        for name in sorted(fs.list_dir(log_dir)):
            path = join(log_dir, name)
            if name == METADATA_DIRECTORY:
                result.foreign = True
                continue
            parsed = parse_partition_dir(name)
            if parsed is None or parsed.state is not DirState.LIVE or not fs.is_dir(path):
                continue
            names = fs.list_dir(path)
            if names and not is_partition(names):
                log.warning("Leaving %s alone: no file in it is a partition's", path)
                continue
            topic, index = parsed.topic_partition
            found = FoundPartition(directory=path, topic_id=_topic_id(fs, path))
            result.topics.setdefault(topic, {}).setdefault(index, []).append(found)
        kraft = read_kraft_metadata(fs, log_dir)
        result.kraft = result.kraft or kraft
    if metadata_log_dir is not None:
        kraft = read_kraft_metadata(fs, metadata_log_dir)
        result.kraft = kraft or result.kraft
        result.foreign = result.foreign or kraft is not None
    return result


def _topic_id(fs: FileSystem, directory: str) -> bytes | None:
    try:
        return read_partition_metadata(fs, directory)
    except CheckpointError as error:
        log.warning("Ignoring the topic id: %s", error)
        return None


def plan(
    found: FoundLogs,
    known: Mapping[str, TopicImage],
    deleting: Collection[str],
    config: BrokerConfig,
    broker_id: int,
    new_uuid: NewUuid,
) -> list[TopicVerdict]:
    """Decide about every topic found, by name; `known` is what the store holds."""
    planner = _Planner(found.kraft or KraftMetadata(), config, broker_id, new_uuid)
    return [
        planner.judge(name, partitions, known.get(name))
        for name, partitions in sorted(found.topics.items())
        if name not in deleting
    ]


class _Planner:
    """Decides about one topic at a time."""

    def __init__(
        self, kraft: KraftMetadata, config: BrokerConfig, broker_id: int, new_uuid: NewUuid
    ) -> None:
        self._kraft = kraft
        self._config = config
        self._broker_id = broker_id
        self._new_uuid = new_uuid

    def judge(
        self,
        name: str,
        partitions: Mapping[int, list[FoundPartition]],
        known: TopicImage | None,
    ) -> TopicVerdict:
        conflict = _conflict(partitions, known)
        if conflict:
            return _left_out(name, partitions, conflict)
        stored_id = next(iter(_ids(partitions)), None)
        if known is not None and stored_id in (None, known.topic_id):
            gap = _gap({*known.partitions, *partitions})
            return _left_out(name, partitions, gap) if gap else self._compare(known, partitions)
        kraft = self._kraft.topic(name)
        if kraft is not None and stored_id not in (None, kraft.topic_id):
            kraft = None  # An older or younger topic of the same name.
        topic_id = stored_id or (kraft.topic_id if kraft else None) or self._new_uuid()
        numbers = {*partitions, *(kraft.partitions if kraft else ())}
        gap = _gap(numbers)
        if gap:
            return _left_out(name, partitions, gap)
        own, source, dropped = self._configs(name, kraft is not None)
        return TopicVerdict(
            name=name,
            action=TopicAction.ADOPTED if known is None else TopicAction.REPLACED,
            topic=TopicImage(
                name=name,
                topic_id=topic_id,
                partitions=self._partitions(range(max(numbers) + 1)),
                config=own,
            ),
            found=tuple(sorted(partitions)),
            config_source=source,
            reason="" if known is None else f"was known as {uuid_to_text(known.topic_id)}",
            dropped_configs=dropped,
        )

    def _compare(
        self, known: TopicImage, partitions: Mapping[int, list[FoundPartition]]
    ) -> TopicVerdict:
        more = range(len(known.partitions), max(partitions) + 1)
        return TopicVerdict(
            name=known.name,
            action=TopicAction.GROWN if more else TopicAction.KNOWN,
            topic=TopicImage(
                name=known.name,
                topic_id=known.topic_id,
                partitions={**known.partitions, **self._partitions(more)},
                config=known.config,
            ),
            found=tuple(sorted(partitions)),
            config_source=ConfigOrigin.STORE,
        )

    def _partitions(self, numbers: Iterable[int]) -> dict[int, PartitionImage]:
        own = (self._broker_id,)
        return {index: new_partition(own, own) for index in numbers}

    def _configs(
        self, name: str, in_kraft: bool
    ) -> tuple[dict[str, str], ConfigOrigin, tuple[str, ...]]:
        if in_kraft:
            usable, dropped = {}, []
            for key, value in sorted(self._kraft.configs.get(name, {}).items()):
                try:
                    TopicConfig.from_broker(self._config, {key: value})
                except ConfigError as error:
                    dropped.append(f"{key}={value} ({error.message})")
                else:
                    usable[key] = value
            return usable, ConfigOrigin.KRAFT, tuple(dropped)
        wish = internal_topic(name, self._config, 1)
        if wish is None:
            return {}, ConfigOrigin.NONE, ()
        return {k: v for k, v in wish.config.items() if v is not None}, ConfigOrigin.INTERNAL, ()


def _ids(partitions: Mapping[int, list[FoundPartition]]) -> dict[bytes, str]:
    """The topic ids found, each with one directory that bears it."""
    return {
        found.topic_id: found.directory
        for directories in partitions.values()
        for found in directories
        if found.topic_id is not None
    }


def _conflict(partitions: Mapping[int, list[FoundPartition]], known: TopicImage | None) -> str:
    for index, directories in sorted(partitions.items()):
        if len(directories) > 1:
            places = " and ".join(found.directory for found in directories)
            return f"partition {index} lies in {places}: delete one of them"
    ids = _ids(partitions)
    if len(ids) < 2:
        return ""
    listed = ", ".join(f"{uuid_to_text(i)} in {place}" for i, place in sorted(ids.items()))
    if known is not None and known.topic_id in ids:
        return f"directories of another topic of this name lie beside it: {listed}"
    return f"its directories belong to different topics: {listed}"


def _gap(numbers: Collection[int]) -> str:
    """Rule 5: why the partitions missing between these are not made, "" if they are."""
    missing = max(numbers) + 1 - len(numbers)
    if missing <= MAX_PARTITIONS_PER_REQUEST:
        return ""
    return (
        f"{missing:,} partitions below {max(numbers)} are missing, and at most"
        f" {MAX_PARTITIONS_PER_REQUEST:,} are made: if this number is no partition's, move the"
        " directory away"
    )


def _left_out(
    name: str, partitions: Mapping[int, list[FoundPartition]], reason: str
) -> TopicVerdict:
    return TopicVerdict(
        name=name,
        action=TopicAction.CONFLICT,
        topic=None,
        found=tuple(sorted(partitions)),
        config_source=ConfigOrigin.NONE,
        reason=reason,
    )


def operations_of(
    verdicts: Iterable[TopicVerdict], known: Mapping[str, TopicImage]
) -> list[TreeOperation]:
    """Return the changes of the store that carry out `verdicts`."""
    operations: list[TreeOperation] = []
    for verdict in verdicts:
        topic = verdict.topic
        if topic is None or verdict.action is TopicAction.KNOWN:
            continue
        name, old = topic.name, known.get(topic.name)
        node = encode_topic(topic.topic_id, topic.partitions)
        if old is None or verdict.action is TopicAction.REPLACED:
            if old is not None:
                operations.append(Delete(topic_path(name), recursive=True))
                operations.append(Delete(topic_config_path(name), recursive=True))
            operations.append(Create(topic_config_path(name), encode_config(topic.config)))
            operations.append(Create(topic_path(name), node))
            new: Collection[int] = topic.partitions
        else:
            operations.append(Put(topic_path(name), node))
            new = [index for index in topic.partitions if index not in old.partitions]
        for index in new:
            state = encode_partition_state(topic.partitions[index], NO_CONTROLLER_EPOCH)
            operations.append(Create(partition_state_path(name, index), state))
    return operations


async def take_over(
    store: MetadataStore,
    fs: FileSystem,
    log_dirs: Iterable[str],
    config: BrokerConfig,
    broker_id: int,
    *,
    new_uuid: NewUuid,
    dry_run: bool = False,
) -> Adoption:
    """Scan, decide and, unless it is a dry run, write the store: all of it or nothing.

    Raises OSError, MetadataStoreError.
    """
    found = await call(scan, fs, tuple(log_dirs), config.metadata_log_dir)
    known = {topic.name: topic for topic in await read_topics(store)}
    deleting = await store.children(DELETE_TOPICS)
    verdicts = plan(found, known, deleting, config, broker_id, new_uuid)
    access, changes = await plan_access(store, None if found.kraft is None else found.kraft.access)
    adoption = Adoption(topics=verdicts, access=access)
    if dry_run:
        return adoption
    operations = operations_of(verdicts, known) + changes
    if operations or found.foreign:
        operations += await _reserve_producer_ids(store, broker_id)
    if operations:
        await store.apply(operations)
    return adoption


async def _reserve_producer_ids(store: MetadataStore, broker_id: int) -> list[TreeOperation]:
    """Rule 6."""
    node = await store.get(PRODUCER_ID_BLOCK)
    last = FIRST_PRODUCER_ID - 1
    if node is not None and decode_producer_id_block(node.value) >= last:
        return []
    value = encode_producer_id_block(broker_id, last, last)
    return [Create(PRODUCER_ID_BLOCK, value) if node is None else Put(PRODUCER_ID_BLOCK, value)]
