"""The cluster metadata as this broker knows it, which can be read at any time without waiting.

Values are frozen; the image swaps whole topics, so a `TopicImage` that a reader holds is one state
of the topic. Only the `ImageApplier` writes topics, and only the controller the brokers.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from config.listener import Listener
from protocol.errors import ErrorCode
from protocol.schema import Encoded
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicPartition

NO_LEADER = -1
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """One partition's place in the cluster."""

    leader: int
    """Broker id, or -1 while there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    """Those of `replicas` that a reassignment adds."""
    removing_replicas: tuple[int, ...] = ()
    """Those of `replicas` that a reassignment removes."""
    partition_epoch: int = 0
    """Grows with each change of the state: the version of its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    """One topic."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    """By number, 0 to n-1 in order."""
    config: Mapping[str, str] = field(default_factory=dict)
    """The topic's own configs; the others come from the broker."""
    encoded: dict[Hashable, Encoded] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Parts of replies that say what this image says, few, by what else they depend on."""

    @property
    def is_internal(self) -> bool:
        """Whether the topic holds state of the brokers."""
        return self.name in INTERNAL_TOPICS


Found = tuple[TopicImage | None, ErrorCode]
"""A topic; None and the code to answer for it if there is none for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    """One live broker."""

    broker_id: int
    endpoints: tuple[Listener, ...]
    """The advertised addresses, by listener; empty: clients get the address they connected to."""
    rack: str | None = None
    features: tuple[tuple[str, int, int], ...] = ()
    """Features with the lowest and the highest level that the broker supports."""


class MetadataImage:
    """Topics, brokers, ids."""

    def __init__(self, *, cluster_id: str = "", controller_id: int = NO_LEADER) -> None:
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.generation = 0
        """Grows with every change; the key for caches of what is derived from the image."""
        self._topics: dict[str, TopicImage] = {}
        self._names_by_id: dict[bytes, str] = {}
        self._names_by_metric: dict[str, set[str]] = {}
        """Names of topics, by the name with `.` written as `_`."""
        self._brokers: dict[int, BrokerImage] = {}
        self._partitions = 0

    def topic(self, name: str) -> TopicImage | None:
        """The topic, or None."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """The topic with this id (16 raw bytes), or None."""
        name = self._names_by_id.get(topic_id)
        return None if name is None else self._topics[name]

    def colliding_name(self, name: str) -> str | None:
        """Return a topic that differs from `name` only by `.` and `_`: metric names would clash."""
        names = self._names_by_metric.get(name.replace(".", "_"), ())
        return min((other for other in names if other != name), default=None)

    def has(self, tp: TopicPartition) -> bool:
        """Whether the partition exists."""
        topic = self._topics.get(tp.topic)
        return topic is not None and tp.partition in topic.partitions

    def topics(self) -> Iterable[TopicImage]:
        """All topics."""
        return self._topics.values()

    def brokers(self) -> list[BrokerImage]:
        """All live brokers, by id."""
        return [self._brokers[broker_id] for broker_id in sorted(self._brokers)]

    def broker(self, broker_id: int) -> BrokerImage | None:
        """A live broker, or None."""
        return self._brokers.get(broker_id)

    def partition_count(self) -> int:
        """Partitions of all topics, for metrics."""
        return self._partitions

    def topic_count(self) -> int:
        """How many topics there are."""
        return len(self._topics)

    def set_topic(self, topic: TopicImage) -> None:
        """Add or replace a topic."""
        old = self._topics.get(topic.name)
        if old is not None and old.topic_id != topic.topic_id:
            self._names_by_id.pop(old.topic_id, None)
        self._partitions += len(topic.partitions) - (0 if old is None else len(old.partitions))
        self._topics[topic.name] = topic
        self._names_by_id[topic.topic_id] = topic.name
        if old is None:
            self._names_by_metric.setdefault(topic.name.replace(".", "_"), set()).add(topic.name)
        self.generation += 1

    def remove_topic(self, name: str) -> None:
        """Remove a topic, if it exists."""
        topic = self._topics.pop(name, None)
        if topic is not None:
            self._names_by_id.pop(topic.topic_id, None)
            self._partitions -= len(topic.partitions)
            alike = self._names_by_metric[name.replace(".", "_")]
            alike.discard(name)
            if not alike:
                del self._names_by_metric[name.replace(".", "_")]
            self.generation += 1

    def set_broker(self, broker: BrokerImage) -> None:
        """Add or replace a broker."""
        self._brokers[broker.broker_id] = broker
        self.generation += 1

    def remove_broker(self, broker_id: int) -> None:
        """Remove a broker that no longer lives, if it is known."""
        if self._brokers.pop(broker_id, None) is not None:
            self.generation += 1
