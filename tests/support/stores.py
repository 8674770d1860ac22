"""A metadata store for a test: in SQLite's own memory unless a path is named."""

from random import Random

from broker.cluster.embedded_store import EmbeddedStore
from broker.world.sqlite_medium import SqliteMedia, SqliteMedium
from broker.world.uuids import random_uuid
from broker.world.workers import InlineWorkers

IN_MEMORY = ":memory:"

_opened: list[SqliteMedium] = []


async def open_store(path: str = IN_MEMORY) -> EmbeddedStore:
    """Opened here and now, without a thread. It is closed when the test ends, if not before."""
    return await EmbeddedStore.open(_open, path, InlineWorkers())


def _open(path: str) -> SqliteMedium:
    medium = SqliteMedia().open(path)
    _opened.append(medium)
    return medium


def close_stores() -> None:
    """All that were opened: an open one is a warning from Python 3.13 on."""
    while _opened:
        _opened.pop().close()


_RANDOM = Random(1)


def new_uuid() -> bytes:
    """An id that differs from all others of this process."""
    return random_uuid(_RANDOM)
