"""Cuts many new topics into batches: one sync per batch, and other changes may come in between."""

from collections.abc import Iterator, Sequence
from typing import Final

from broker.cluster.topic_plan import NewTopic

TOPICS_AT_ONCE: Final = 64
PARTITIONS_AT_ONCE: Final = 256
"""The most partitions of a batch of several topics."""


def batches(wishes: Sequence[NewTopic], default: int) -> Iterator[list[NewTopic]]:
    """Cut `wishes`; a topic without a number of partitions counts `default`."""
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
