"""A metadata store for a test, in SQLite's own memory unless a path is given."""

from random import Random

from broker.cluster.embedded_store import EmbeddedStore
from broker.world.sqlite_medium import SqliteMedia, SqliteMedium
from broker.world.uuids import random_uuid

IN_MEMORY = ":memory:"

_opened: list[SqliteMedium] = []


async def open_store(path: str = IN_MEMORY) -> EmbeddedStore:
    """Open a store without a thread. It is closed when the test ends, if not before."""
    return await EmbeddedStore.open(_open, path)


def _open(path: str) -> SqliteMedium:
    medium = SqliteMedia().open(path)
    _opened.append(medium)
    return medium


def close_stores() -> None:
    """Close all stores, because Python 3.13 and later warn of an open one."""
    while _opened:
        _opened.pop().close()


_RANDOM = Random(1)


def new_uuid() -> bytes:
    """Return an id that differs from all others of this process."""
    return random_uuid(_RANDOM)
