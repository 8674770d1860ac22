"""Reads again the nodes of the metadata tree that have changed, whoever has changed them.

A watch names the nodes; their values are read when somebody catches up: the task that follows the
changes, a request that has made some, or one that needs the latest. So there is one path for the
start, this broker's own changes and those of other writers. A node that could not be read, because
the store was not reached or the reading request has ended, is read the next time.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from broker.cluster.metadata_store import (
    MetadataStore,
    MetadataStoreError,
    NodeEvent,
    StoredNode,
    StoreUnavailableError,
)
from broker.cluster.retried import Retried
from storage.waits import PAUSE, Lock, Work

log = logging.getLogger(__name__)


class ChangedNodes:
    """The nodes of one kind that are to be read again."""

    def __init__(
        self,
        store: MetadataStore,
        watched: Iterable[str],
        *,
        what: str,
        node_of: Callable[[str], str | None],
        apply: Callable[[str, StoredNode | None], Work[None]],
    ) -> None:
        """`what`: how the log calls what the nodes hold.

        `node_of` returns which node to read when the one at a path has changed; None: no matter.
        `apply` gets what was read; a MetadataStoreError leaves what was known, with an error in the
        log.
        """
        self._store = store
        self._what = what
        self._node_of = node_of
        self._apply = apply
        self._told: dict[str, None] = {}
        self._following = Retried(f"{what} stay as they were")
        self._reading = Lock()
        self._is_reading = False
        for path in watched:
            store.watch(path, self._on_events)

    def _on_events(self, events: Sequence[NodeEvent]) -> None:
        self.note(event.path for event in events)

    def note(self, paths: Iterable[str]) -> None:
        """These nodes have changed, or were not read yet."""
        self._told |= dict.fromkeys(node for node in map(self._node_of, paths) if node is not None)
        if self._told:
            self._following.ask()

    async def catch_up(self) -> None:
        """Read what has changed so far. Raises StoreUnavailableError."""
        async with self._reading:
            while self._told:
                told, self._told = self._told, {}
                self._is_reading = True
                try:
                    paths = list(told)
                    nodes = await self._store.get_many(paths)
                    for path, node in zip(paths, nodes, strict=True):
                        try:
                            await self._apply(path, node)
                        except MetadataStoreError as error:
                            log.error("%s stay as they were: %s", self._what, error)
                        del told[path]
                        await PAUSE
                finally:
                    self._is_reading = False
                    self._told = told | self._told

    async def catch_up_if_possible(self) -> None:
        """Read what has changed so far; if the store cannot be reached, only warn of it."""
        try:
            await self.catch_up()
        except StoreUnavailableError as error:
            self._following.complain(error)

    async def catch_up_unless_under_way(self) -> None:
        """`catch_up_if_possible`, but while another one does so what is known will do.

        For many who would all wait when the store cannot be reached.
        """
        if not self._is_reading:
            await self.catch_up_if_possible()

    async def run(self, lock: Lock | None = None) -> None:
        """Follow the changes until ended; hold `lock` meanwhile."""

        async def catch_up() -> None:
            async with lock or Lock():
                await self.catch_up()

        await self._following.run(catch_up)
