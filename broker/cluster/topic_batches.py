"""Which of many new topics are written together: one sync for all of them, and between two batches
others may change something."""

from collections.abc import Iterator, Sequence
from typing import Final

from broker.cluster.topic_plan import NewTopic

TOPICS_AT_ONCE: Final = 64
PARTITIONS_AT_ONCE: Final = 256
"""New topics that are written together have no more partitions than this, if they are several."""


def batches(wishes: Sequence[NewTopic], default: int) -> Iterator[list[NewTopic]]:
    """Cut `wishes`; `default` partitions has a topic that does not say how many."""
    batch: list[NewTopic] = []
    partitions = 0
    for wish in wishes:
        wished = len(wish.assignment) or (default if wish.partitions < 0 else wish.partitions)
        if batch and (len(batch) == TOPICS_AT_ONCE or partitions + wished > PARTITIONS_AT_ONCE):
            yield batch
            batch, partitions = [], 0
        batch.append(wish)
        partitions += wished
    if batch:
        yield batch
