"""Cuts many topics into batches: one sync per batch, and other changes may come in between."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

TOPICS_AT_ONCE: Final = 128
PARTITIONS_AT_ONCE: Final = 256
"""The most partitions of a batch of several topics."""

T = TypeVar("T")


def batches(topics: Iterable[T], partitions_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Cut `topics`, in order, by the number of partitions of each."""
    batch: list[T] = []
    total = 0
    for topic in topics:
        partitions = partitions_of(topic)
        if batch and (len(batch) == TOPICS_AT_ONCE or total + partitions > PARTITIONS_AT_ONCE):
            yield batch
            batch, total = [], 0
        batch.append(topic)
        total += partitions
    if batch:
        yield batch
