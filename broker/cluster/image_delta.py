"""The difference between two images of a topic, computed from these two alone.

A `TopicDelta` says what a broker must do before it may show the next image: which logs it deletes,
makes and opens, where it leads or resigns, whether configurations change. After Kafka's
`TopicsDelta` and `LocalReplicaChanges`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.cluster.image import TopicImage
from config.topic_config import TopicConfig
from storage.waits import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDelta:
    """The changes of a topic, to be carried out in this order."""

    name: str
    deleted: TopicImage | None = None
    """A deleted topic of this name, whose logs are deleted."""
    topic: TopicImage | None = None
    """The topic as it is now; None if there is none."""
    new: tuple[int, ...] = ()
    """New partitions, whose logs are made."""
    changed: tuple[int, ...] = ()
    """Partitions with logs, whose leader, leader epoch or ISR has changed."""
    lost: tuple[int, ...] = ()
    """Partitions that the topic no longer has, which no controller causes: they are no longer
    served, but their logs stay, because no request deleted them."""
    config_changed: bool = False

    @property
    def changes_anything(self) -> bool:
        """Whether the two images differ."""
        return bool(self.deleted or self.new or self.changed or self.lost or self.config_changed)

    @property
    def opens_logs(self) -> bool:
        """Whether logs may have to be opened."""
        return bool(self.new or self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOutcome:
    """The result of applying a delta."""

    refused: Exception | None = None
    """Why the new partitions were refused; then none of them was made, and nothing is left."""
    failed: Mapping[int, Exception] = field(default_factory=dict)
    """Partitions that could not be opened, with the errors. They exist, without a leader."""


CarryOut = Callable[[TopicDelta, TopicConfig | None], Work[DeltaOutcome]]
"""Makes, opens, leads, resigns and deletes what a delta says. Raises KafkaError.

The config is for logs that are opened; None when none is."""


def topic_delta(name: str, before: TopicImage | None, now: TopicImage | None) -> TopicDelta:
    """Return the delta between two images of a topic, while the broker runs."""
    deleted = None
    if before is not None and (now is None or now.topic_id != before.topic_id):
        before, deleted = None, before
    if now is None or before is None:
        new = () if now is None else tuple(now.partitions)
        return TopicDelta(name=name, deleted=deleted, topic=now, new=new)
    known = before.partitions
    return TopicDelta(
        name=name,
        topic=now,
        new=tuple(index for index in now.partitions if index not in known),
        changed=tuple(
            index
            for index, partition in now.partitions.items()
            if index in known and known[index] is not partition and known[index] != partition
        ),
        lost=tuple(index for index in known if index not in now.partitions),
        config_changed=now.config != before.config,
    )


def first_delta(topic: TopicImage) -> TopicDelta:
    """Return the delta from nothing to a topic that existed when the broker started.

    Its logs are those of the last run. No partition is new, so no log is made while a log directory
    that may hold it is offline.
    """
    return TopicDelta(name=topic.name, topic=topic, changed=tuple(topic.partitions))
