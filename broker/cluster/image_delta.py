"""How one image of a topic becomes the next: computed from the two, and from nothing else.

A `TopicDelta` says what a broker has to do before it may show the next image: which logs it
deletes, makes and opens, where it leads or resigns, whether configurations change. After
`TopicsDelta` and `LocalReplicaChanges` of Kafka.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.cluster.image import TopicImage


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDelta:
    """What has happened to a topic, in this order."""

    name: str
    deleted: TopicImage | None = None
    """A topic of this name that is no more: its logs go."""
    topic: TopicImage | None = None
    """What there is now; None: nothing."""
    new: tuple[int, ...] = ()
    """Partitions that exist since a moment ago: their logs are made."""
    changed: tuple[int, ...] = ()
    """Partitions whose logs are there: their leader, leader epoch or ISR is another."""
    lost: tuple[int, ...] = ()
    """Partitions that the topic has no more, which no controller brings about: served no more, but
    their logs stay, as nobody has asked for their deletion."""
    config_changed: bool = False

    @property
    def changes_anything(self) -> bool:
        """False when both images say the same."""
        return bool(self.deleted or self.new or self.changed or self.lost or self.config_changed)

    @property
    def opens_logs(self) -> bool:
        """Whether there may be logs to be opened for it."""
        return bool(self.new or self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a delta."""

    refused: Exception | None = None
    """Why the new partitions are not there. None of them is: nothing of them was left behind."""
    failed: Mapping[int, Exception] = field(default_factory=dict)
    """Partitions that could not be opened, and why. They exist, without a leader."""


def topic_delta(name: str, before: TopicImage | None, now: TopicImage | None) -> TopicDelta:
    """From an image to the next, while the broker runs."""
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
    """From nothing to the image of a topic that was there when the broker started.

    Its logs are those of the last run: none of them is called new, so none is made while a log
    directory that may hold it is offline.
    """
    return TopicDelta(name=topic.name, topic=topic, changed=tuple(topic.partitions))
