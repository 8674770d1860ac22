"""Plans new topics and partitions: checks every rule of creation before anything is written.

Pure: takes image, configuration and request, returns a `TopicImage` or raises the `KafkaError` for
the client (S-META-1, S-META-2, S-CFG-4). `validate_only` requests end here. For the controller of a
stand-alone broker and for the members of a cluster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.cluster.image import MetadataImage, PartitionImage, TopicImage
from broker.cluster.placement import (
    FROM_THE_FIRST,
    Racks,
    Start,
    assign_replicas,
    check_assignment,
    check_replication_factor,
)
from broker.cluster.topic_names import CLUSTER_METADATA, invalid_name_reason
from broker.world.uuids import NewUuid
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE

Charge = Callable[[int], object]
"""Called with the number of partitions that a change makes or deletes, when all else allows it.
Raises KafkaError if the client has spent its quota of changes; then nothing is changed."""

USE_DEFAULT = -1
"""Number of partitions or replicas: the broker's default (KIP-464)."""

FIRST_LEADER_EPOCH = 0

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Kafka's `ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """The request for a new topic."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Replicas by partition; then the two numbers above must be -1."""
    config: Mapping[str, str | None] = field(default_factory=dict)

    def partitions_wished(self, default: int) -> int:
        """How many partitions it asks for; `default`: the broker's number."""
        if self.assignment:
            return len(self.assignment)
        return default if self.partitions == USE_DEFAULT else max(self.partitions, 0)


def check_partitions_wished(wishes: Iterable[NewTopic], broker: BrokerConfig) -> None:
    """Raise KafkaError POLICY_VIOLATION if the topics of one request have too many partitions.

    Checked before anything is planned, as in Kafka, so that a large number costs nothing.
    """
    check_partitions_added(wish.partitions_wished(broker.num_partitions) for wish in wishes)


def check_partitions_added(counts: Iterable[int]) -> None:
    """Raise KafkaError POLICY_VIOLATION if the sum is more than one request may make."""
    if sum(counts) > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def check_new_name(name: str, image: MetadataImage) -> None:
    """Check a new topic's name.

    Raises KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST.
    """
    reason = invalid_name_reason(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if image.topic(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if name == CLUSTER_METADATA:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    other = image.colliding_name(name)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )


async def plan_each(
    wishes: Iterable[NewTopic], plan: Callable[[NewTopic], TopicImage], charge: Charge | None
) -> "dict[str, TopicImage | KafkaError]":
    """Plan topics that are made together; return each by name, or the error that refused it."""
    results: dict[str, TopicImage | KafkaError] = {}
    by_metric: dict[str, str] = {}
    for wish in wishes:
        try:
            topic = plan(wish)
            _check_unlike(wish.name, by_metric)
            if charge is not None:
                charge(len(topic.partitions))
            results[wish.name] = topic
        except KafkaError as error:
            results[wish.name] = error.with_traceback(None)
        await PAUSE
    return results


def _check_unlike(name: str, by_metric: dict[str, str]) -> None:
    """Check a new topic's name against those that are made together with it, and add it.

    `by_metric`: their names, by the name with `.` written as `_`. Raises INVALID_TOPIC_EXCEPTION.
    """
    other = by_metric.setdefault(name.replace(".", "_"), name)
    if other != name:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def check_config(config: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """Check and return a topic's own configs. Raises KafkaError INVALID_CONFIG (S-CFG-4)."""
    nulls = sorted(name for name, value in config.items() if value is None)
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    values = {name: value for name, value in config.items() if value is not None}
    try:
        TopicConfig.from_broker(broker, values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
    return values


def plan_topic(
    wish: NewTopic,
    new_uuid: NewUuid,
    image: MetadataImage,
    broker: BrokerConfig,
    start: Start = FROM_THE_FIRST,
) -> TopicImage:
    """Return the topic as it will be; its replicas are placed from `start`. Raises KafkaError."""
    check_new_name(wish.name, image)
    racks = {member.broker_id: member.rack for member in image.brokers()}
    brokers = list(racks)
    assignment = _assignment(wish, racks, broker, start)
    config = check_config(wish.config, broker)
    while image.topic_by_id(topic_id := new_uuid()) is not None:
        pass
    return TopicImage(
        name=wish.name,
        topic_id=topic_id,
        partitions=new_partitions(assignment, brokers),
        config=config,
    )


def _assignment(
    wish: NewTopic, racks: Racks, broker: BrokerConfig, start: Start
) -> dict[int, tuple[int, ...]]:
    brokers = list(racks)
    if wish.assignment:
        if (wish.partitions, wish.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. Both "
                "cannot be used at the same time.",
            )
        assignment = dict(sorted(wish.assignment.items()))
        check_assignment(assignment, brokers)
        return assignment
    partitions, replication = wish.partitions, wish.replication_factor
    if partitions == USE_DEFAULT:
        partitions = broker.num_partitions
    if replication == USE_DEFAULT:
        replication = broker.default_replication_factor
    if partitions <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
        )
    check_replication_factor(replication, len(brokers))
    return assign_replicas(brokers, range(partitions), replication, start=start, racks=racks)


def new_partitions(
    assignment: Mapping[int, tuple[int, ...]], live: Sequence[int]
) -> dict[int, PartitionImage]:
    """Return new partitions; those with the same replicas share one value."""
    made: dict[tuple[int, ...], PartitionImage] = {}
    partitions: dict[int, PartitionImage] = {}
    for index, replicas in assignment.items():
        partition = made.get(replicas)
        if partition is None:
            partition = made[replicas] = new_partition(replicas, live)
        partitions[index] = partition
    return partitions


def new_partition(replicas: tuple[int, ...], live: Sequence[int]) -> PartitionImage:
    """Return a new partition: led by its first live replica, with all live replicas in sync."""
    in_sync = tuple(broker for broker in replicas if broker in live)
    return PartitionImage(
        leader=in_sync[0] if in_sync else -1,
        leader_epoch=FIRST_LEADER_EPOCH,
        replicas=replicas,
        isr=in_sync,
    )


def plan_more_partitions(
    topic: TopicImage,
    count: int,
    assignments: Sequence[tuple[int, ...]] | None,
    brokers: Sequence[int],
    racks: Racks | None = None,
) -> dict[int, PartitionImage]:
    """Return the partitions to add for `count` in all.

    Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR.
    """
    have = len(topic.partitions)
    if count == have:
        message = f"Topic already has {have} partition(s)."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if count < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {have} partition(s); {count} would not be an "
            "increase.",
        )
    replication = len(topic.partitions[0].replicas)
    if assignments is None:
        check_replication_factor(replication, len(brokers))
        leader = topic.partitions[0].replicas[0]
        first = next((place for place, one in enumerate(brokers) if one >= leader), 0)
        added = assign_replicas(
            brokers,
            range(have, count),
            replication,
            start=Start(first, first),
            racks=racks,
        )
    else:
        if len(assignments) != count - have:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {count - have} additional partition(s), but only "
                f"{len(assignments)} assignment(s) were specified.",
            )
        added = dict(enumerate(assignments, start=have))
        check_assignment(added, brokers, first_partition=have)
        if any(len(replicas) != replication for replicas in added.values()):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All new partitions must have {replication} replica(s) as the others have.",
            )
    return new_partitions(added, brokers)
