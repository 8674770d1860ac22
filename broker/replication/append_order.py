"""Holding the appends of a partition back, while its log is replaced or its role changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.replication.partition import Partition


@asynccontextmanager
async def appends_held_back(partition: Partition) -> AsyncIterator[None]:
    """Wait for the append that is under way, and hold others back in this context; they queue.

    A leader of an internal topic must not be held back: its coordinator cannot wait.
    """
    partition.appending += 1
    try:
        async with partition.append_lock:
            yield
    finally:
        partition.appending -= 1


@asynccontextmanager
async def between_appends(partition: Partition | None) -> AsyncIterator[None]:
    """Change the role of a partition here: no batch of an older leader epoch is under way.

    Kafka's appends hold `leaderIsrUpdateLock` for reading, and changes of roles for writing. A
    thread that wrote a batch of the old epoch behind the start of the new one would make the leader
    and its followers cut the batch for ever.
    """
    if partition is None or not partition.appending:
        yield
    else:
        async with appends_held_back(partition):
            yield
