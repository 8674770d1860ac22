"""A metadata store for a test, in SQLite's own memory unless a path is given."""

from collections.abc import Sequence
from random import Random

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import MetadataStore, StoredNode, StoreUnavailableError
from broker.world.sqlite_medium import SqliteMedia, SqliteMedium
from broker.world.uuids import random_uuid

IN_MEMORY = ":memory:"

_opened: list[SqliteMedium] = []


async def open_store(path: str = IN_MEMORY) -> EmbeddedStore:
    """Open a store without a thread. It is closed when the test ends, if not before."""
    return await EmbeddedStore.open(_open, path)


def _open(path: str) -> SqliteMedium:
    medium = SqliteMedium(path) if path == IN_MEMORY else SqliteMedia().open(path)
    _opened.append(medium)
    return medium


async def value_of(store: MetadataStore, path: str) -> bytes:
    """The value of a node that there is."""
    node = await store.get(path)
    assert node is not None, path
    return node.value


class UnreachableStore(EmbeddedStore):
    """A store that cannot be read for some times."""

    failures = 0

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError(paths[0], "no connection")
        return await super().get_many(paths)


async def open_unreachable_store() -> UnreachableStore:
    """Open a store whose `failures` a test sets."""
    store = await UnreachableStore.open(_open, IN_MEMORY)
    assert isinstance(store, UnreachableStore)
    return store


class Ended(Exception):
    """Ends a task that runs for ever."""


def close_stores() -> None:
    """Close all stores, because Python 3.13 and later warn of an open one."""
    while _opened:
        _opened.pop().close()


_RANDOM = Random(1)


def new_uuid() -> bytes:
    """Return an id that differs from all others of this process."""
    return random_uuid(_RANDOM)
