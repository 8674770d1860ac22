"""The changes of topics that a watch of the metadata tree reported: which nodes to read again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.cluster.metadata_store import NodeChange, NodeEvent
from broker.cluster.tree_values import DELETE_TOPICS, TOPIC_CONFIGS, TOPICS
from storage.waits import PAUSE

WATCHED = (TOPICS, TOPIC_CONFIGS, DELETE_TOPICS)
"""All nodes about topics are at these paths and below."""

_STATE_DEPTH = 7
"""Parts of `/brokers/topics/<t>/partitions/<p>/state`, the empty one in front included."""


@dataclass(slots=True)
class TopicNews:
    """The changes of one topic."""

    assignment: bool = False
    """Its own node: id and replicas."""
    is_gone: bool = False
    """Whether the last change of its own node was its deletion."""
    config: bool = False
    deletion: bool = False
    """The mark of its deletion."""
    states: set[int] = field(default_factory=set)
    """Partitions whose leader or ISR has changed."""


async def gather(events: Iterable[NodeEvent], news: dict[str, TopicNews]) -> None:
    """Sort events into `news`, topics in the order of their first event."""
    for event in events:
        parts = event.path.split("/")
        parent = "/".join(parts[:3])
        if len(parts) > 3 and parent in WATCHED:
            topic = news.setdefault(parts[3], TopicNews())
            if parent == TOPIC_CONFIGS:
                topic.config = True
            elif parent == DELETE_TOPICS:
                topic.deletion = True
            elif len(parts) == 4:
                topic.assignment = True
                topic.is_gone = event.change is NodeChange.DELETED
            elif len(parts) == _STATE_DEPTH and parts[5].isdecimal():
                topic.states.add(int(parts[5]))
        await PAUSE
