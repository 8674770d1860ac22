"""The store as a controller uses it: every write is fenced by /controller_epoch.

Each write is a multi with a `Check` of the version that /controller_epoch got when this controller
was elected. Another controller's election changes that version, so that nothing a former one has
still in mind reaches the tree: it gets `ControllerMoved` and resigns.

While the store cannot be reached, an operation is repeated until it can or the session has ended
(then `ControllerMoved`: somebody else may be the controller). A write whose answer was lost may
have been made; the repeated one then meets its own result. So a conflict does not mean that another
one wrote: callers read again and decide again, and a node that exists with what was to be written
counts as written.

Sources: `kafka.zk.KafkaZkClient` (3.9): `registerControllerAndIncrementControllerEpoch`,
`retryRequestsUntilConnected`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from broker.cluster.metadata_store import (
    Applied,
    Check,
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    NodeExistsError,
    NodeMissingError,
    Put,
    StoredNode,
    StoreUnavailableError,
    TreeOperation,
    VersionMismatchError,
)
from broker.cluster.tree_values import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BadValueError,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from storage.waits import PAUSE, Work, sleep

log = logging.getLogger(__name__)
T = TypeVar("T")

NO_CONTROLLER: Final = -1
AT_ONCE: Final = 1000
"""Nodes that are read, or written, in one go."""
_FIRST_DELAY_S: Final = 0.1
_LONGEST_DELAY_S: Final = 1.0
_SMALLEST_EPOCH: Final = 0


class ControllerMoved(Exception):
    """This broker is the controller no more: nothing more may be written."""


class FencedStore:
    """See the module. One per session; `epoch_version` is that of the last election won."""

    def __init__(self, store: MetadataStore, broker_id: int, wall_ms: Callable[[], int]) -> None:
        self._store = store
        self._broker_id = broker_id
        self._wall_ms = wall_ms
        self.epoch = 0
        self.epoch_version = 0
        self._node_made: int | None = None
        """The change that made this broker's /controller in this session."""
        self.alive: Callable[[], bool] = lambda: True
        """Whether the session in which the election was won goes on."""

    # ------------------------------------------------------------------ election

    async def controller_id(self) -> int:
        """The broker that is the controller, -1 if none is. Raises ControllerMoved."""
        node = await self._patiently(lambda: self._store.get(CONTROLLER))
        if node is None:
            return NO_CONTROLLER
        try:
            return decode_controller(node.value)
        except BadValueError:
            return NO_CONTROLLER

    async def elect(self) -> None:
        """Become the controller in a new epoch. Raises ControllerMoved if another is quicker."""
        epoch, version = await self._last_epoch()
        operations: list[TreeOperation] = [
            Create(CONTROLLER, encode_controller(self._broker_id, self._wall_ms()), ephemeral=True),
            Put(CONTROLLER_EPOCH, encode_controller_epoch(epoch + 1), version),
        ]
        try:
            await self._patiently(lambda: self._store.apply(operations))
        except (NodeExistsError, VersionMismatchError) as error:
            # Perhaps this very write, whose answer was lost: then epoch and id are its own.
            mine = await self.controller_id() == self._broker_id
            if not mine or (await self._last_epoch())[0] != epoch + 1:
                raise _moved() from error
        self.epoch, self.epoch_version = epoch + 1, version + 1
        node = await self.get(CONTROLLER)
        self._node_made = None if node is None else node.created

    async def _last_epoch(self) -> tuple[int, int]:
        while True:
            node = await self._patiently(lambda: self._store.get(CONTROLLER_EPOCH))
            if node is not None:
                return decode_controller_epoch(node.value), node.version
            try:
                await self._patiently(
                    lambda: self._store.create(
                        CONTROLLER_EPOCH, encode_controller_epoch(_SMALLEST_EPOCH)
                    )
                )
            except NodeExistsError:
                continue

    async def is_epoch_current(self) -> bool:
        """Whether nobody was elected after this broker. Raises ControllerMoved."""
        node = await self._patiently(lambda: self._store.get(CONTROLLER_EPOCH))
        return node is not None and node.version == self.epoch_version

    async def resign(self) -> None:
        """Remove /controller, so that another one is elected; not if that has happened already."""
        try:
            await self.apply([Delete(CONTROLLER)])
        except (ControllerMoved, MetadataStoreError) as error:
            log.info("The controller's node was not removed: %s", error)

    async def abandon(self) -> None:
        """Remove /controller if it is this session's, even if the epoch is another one's.

        One that an earlier session of this broker has left goes with that session.
        """
        node = await self.get(CONTROLLER)
        if node is None or node.created != self._node_made:
            return
        try:
            await self._patiently(lambda: self._store.delete(CONTROLLER))
        except MetadataStoreError as error:
            log.info("The controller's node was not removed: %s", error)

    # ------------------------------------------------------------------ nodes

    async def get(self, path: str) -> StoredNode | None:
        """A node, or None. Raises ControllerMoved."""
        return await self._patiently(lambda: self._store.get(path))

    async def children(self, path: str) -> list[str]:
        """Names below a node. Raises ControllerMoved."""
        return await self._patiently(lambda: self._store.children(path))

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """Nodes, in slices. Raises ControllerMoved."""
        found: list[StoredNode | None] = []
        for start in range(0, len(paths), AT_ONCE):
            some = paths[start : start + AT_ONCE]
            found += await self._slice(some)
            await PAUSE
        return found

    async def _slice(self, paths: Sequence[str]) -> list[StoredNode | None]:
        return await self._patiently(lambda: self._store.get_many(paths))

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        """Make all changes or none, if this is still the controller.

        Raises ControllerMoved, and MetadataStoreError for what is wrong with the changes.
        """
        fenced = [self._check(), *operations]
        try:
            await self._patiently(lambda: self._store.apply(fenced))
        except MetadataStoreError as error:
            if error.path == CONTROLLER_EPOCH:
                raise _moved() from error
            raise

    async def apply_each(self, operations: Sequence[TreeOperation]) -> list[Applied]:
        """Make each change on its own; return what became of each.

        Raises ControllerMoved.
        """
        applied: list[Applied] = []
        for start in range(0, len(operations), AT_ONCE):
            applied += await self._apply_some(operations[start : start + AT_ONCE])
            await PAUSE
        return applied

    async def _apply_some(self, operations: Sequence[TreeOperation]) -> list[Applied]:
        checks = (self._check(),)
        applied: list[Applied] = list(
            await self._patiently(lambda: self._apply_fenced(operations, checks))
        )
        # Try each operation that the store could not answer for again, until it can.
        for index, outcome in enumerate(applied):
            if isinstance(outcome, StoreUnavailableError):
                one = operations[index : index + 1]
                applied[index] = (await self._apply_again(one, checks))[0]
        return applied

    async def _apply_again(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check]
    ) -> list[Applied]:
        async def attempt() -> list[Applied]:
            applied = await self._apply_fenced(operations, checks)
            if isinstance(applied[0], StoreUnavailableError):
                raise applied[0]
            return applied

        return await self._patiently(attempt)

    async def _apply_fenced(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check]
    ) -> list[Applied]:
        try:
            return await self._store.apply_each(operations, checks)
        except StoreUnavailableError:
            raise
        except MetadataStoreError as error:
            raise _moved() from error  # only a check that does not hold is raised

    async def delete_all(self, paths: Iterable[str]) -> None:
        """Remove nodes without children, those that are there."""
        for outcome in await self.apply_each([Delete(path) for path in paths]):
            if isinstance(outcome, MetadataStoreError) and not isinstance(
                outcome, NodeMissingError
            ):
                log.warning("A node was not removed: %s", outcome)

    # ------------------------------------------------------------------ pieces

    def _check(self) -> Check:
        return Check(CONTROLLER_EPOCH, self.epoch_version)

    def _expect_alive(self) -> None:
        if not self.alive():
            raise ControllerMoved("the session with the metadata store has ended")

    async def _patiently(self, ask: Callable[[], Work[T]]) -> T:
        delay_s = _FIRST_DELAY_S
        while True:
            self._expect_alive()
            try:
                return await ask()
            except StoreUnavailableError as error:
                self._expect_alive()
                log.warning("The metadata store cannot be reached, trying again: %s", error)
            await sleep(delay_s)
            delay_s = min(delay_s * 2, _LONGEST_DELAY_S)


def _moved() -> ControllerMoved:
    return ControllerMoved("another broker was elected")
