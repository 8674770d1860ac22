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
