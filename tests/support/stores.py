"""A metadata store for a test: in SQLite's own memory unless a path is named."""

from random import Random

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.identity import random_uuid
from broker.world.sqlite_medium import SqliteMedia
from broker.world.workers import InlineWorkers

IN_MEMORY = ":memory:"


async def open_store(path: str = IN_MEMORY) -> EmbeddedStore:
    """Opened here and now, without a thread."""
    return await EmbeddedStore.open(SqliteMedia().open, path, InlineWorkers())


_RANDOM = Random(1)


def new_uuid() -> bytes:
    """An id that differs from all others of this process."""
    return random_uuid(_RANDOM)
