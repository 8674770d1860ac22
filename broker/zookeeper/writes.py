"""Changing the tree in ZooKeeper: one request for all changes, or one for each.

Rules
1. Changes that belong together are one `multi`. Only the deletion of more nodes than fit into one
   is made in several, deepest first, as Kafka makes every deletion.
2. If another writer has come in between, the change is planned again.
3. A write whose answer was lost is made again when the connection stands. If that is refused, the
   tree is read: if it is as the write would leave it, the write was made. Sequential nodes may be
   there twice then. A write of an ephemeral node belongs to the session in which its caller began
   it: it is never made in a later one, whose owner knows nothing of it (decision 104).
4. Changes that do not belong together are tried in groups nevertheless, because ZooKeeper and its
   client take hardly longer for 64 than for one. Kafka pipelines as many requests.
5. Watches here get a change before the writer continues.

Source: `kafka.zk.KafkaZkClient.retryRequestsUntilConnected` (3.9).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Applied,
    Check,
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    NodeExistsError,
    NodeMissingError,
    Put,
    StoreUnavailableError,
    TreeOperation,
    VersionMismatchError,
)
from broker.cluster.node_tree import parent_of
from broker.zookeeper.change_logs import notifications
from broker.zookeeper.operations import MOST_BYTES, Tree, first_refusal, refusal_of
from broker.zookeeper.planned_change import Overtaken, PlannedChange, version_in
from broker.zookeeper.reads import Reads
from broker.zookeeper.requests import Lost, Requests, Waited

Noted = Callable[[Sequence[tuple[NodeEvent, int]]], None]
"""Called with changes that were made from here, and the versions of the nodes after them."""

_ATTEMPTS: Final = 20
"""How often a change is planned again because another writer, or a loss, came in between."""
_SLICE: Final = 1000
"""Changes of `each` that are in line at once, so that those of others need not wait for all."""
_GROUP: Final = 64
"""Changes of `each` in one request."""
_GROUP_BYTES: Final = 256 * 1024
"""Bytes of the changes in one request."""
_CONTRADICTIONS: Final = (NodeExistsError, NodeMissingError, VersionMismatchError)
"""The refusals of a change that is made a second time."""


class Writes:
    """Changes the tree. Errors are those of `MetadataStore`."""

    def __init__(
        self,
        requests: Requests,
        tree: Tree,
        reads: Reads,
        noted: Noted,
        session_id: Callable[[], int],
    ) -> None:
        self._session_id = session_id
        self._requests = requests
        self._tree = tree
        self._reads = reads
        self._noted = noted

    # ---- together

    async def together(self, operations: Sequence[TreeOperation]) -> list[int]:
        """Make all changes or none; return the versions of the nodes."""
        return await self._together(operations, was_lost=False) if operations else []

    async def _together(self, operations: Sequence[TreeOperation], *, was_lost: bool) -> list[int]:
        session_id = self._session_id() if _has_ephemerals(operations) else None
        for _ in range(_ATTEMPTS):
            try:
                change = await self._planned(operations)
                change.session_id = session_id
                results = await self._make(change)
            except Overtaken:
                continue
            except Lost:
                was_lost = True
                continue
            except _CONTRADICTIONS:
                if was_lost and await self._is_made(operations):
                    return await self._versions(operations)
                raise
            return change.own_results(results)
        raise StoreUnavailableError(
            operations[-1].path, f"given up after {_ATTEMPTS} attempts: it changes all the time"
        )

    async def _planned(self, operations: Sequence[TreeOperation]) -> PlannedChange:
        change = PlannedChange()
        told = notifications(operations)
        change.add(*(Create(path) for path in await self._missing_above([*told, *operations])))
        change.add(*told)
        for operation in operations:
            if isinstance(operation, Delete) and operation.recursive:
                below = [*await self._reads.subtree(operation.path)]
                below += change.made_under(operation.path)
                change.add_own(operation, await self._few(below, operations))
            else:
                change.add_own(operation)
        self._tree.check_size(change.operations)
        return change

    async def _few(self, paths: list[str], operations: Sequence[TreeOperation]) -> list[str]:
        """Return the paths to delete in one request; if there are too many, delete others now."""
        if self._tree.size([Delete(path) for path in paths]) < MOST_BYTES // 2:
            return paths
        checks = [one for one in operations if isinstance(one, Check)]
        deletions = [Delete(path) for path in reversed(paths[1:])]
        at_once = MOST_BYTES // 2 // max(self._tree.size_of(one) for one in deletions)
        for at in range(0, len(deletions), at_once):
            change = PlannedChange()
            for check in checks:
                change.add_own(check)
            change.add(*deletions[at : at + at_once])
            await self._make(change)
        return paths[:1]

    async def _make(self, change: PlannedChange) -> list[Any]:
        """Make one request. Raises the refusal, Overtaken, Lost, StoreUnavailableError."""
        [waited] = self._begun([change])
        await self._requests.wait_for([waited])
        return self._finished(change, waited)

    def _begun(self, changes: Sequence[PlannedChange]) -> list[Waited]:
        waited = [
            Waited(
                partial(self._begin, change),
                change.operations[-1].path,
                repeatable=False,
                first=partial(self._note, change),
            )
            for change in changes
        ]
        self._requests.begin_all(waited)
        return waited

    def _begin(self, change: PlannedChange, client: Any) -> Any:
        if change.session_id not in (None, self._session_id()):
            raise StoreUnavailableError(
                change.operations[-1].path, "the session in which it was asked for has ended"
            )
        return self._tree.multi(client, change.operations)

    def _finished(self, change: PlannedChange, waited: Waited) -> list[Any]:
        if isinstance(waited.error, Lost):
            raise waited.error
        if waited.error is not None:
            raise refusal_of(waited.path, ANY_VERSION, waited.error) from waited.error
        results: list[Any] = waited.value
        change.refuse(results)
        return results

    def _note(self, change: PlannedChange, results: Sequence[Any]) -> None:
        """Report the changes to watches, before these see them by answers to their requests."""
        if first_refusal(results) is None:
            self._noted(self._events(change.operations, results))

    def _events(
        self, operations: Iterable[TreeOperation], results: Sequence[Any]
    ) -> list[tuple[NodeEvent, int]]:
        events = []
        for operation, result in zip(operations, results, strict=True):
            match operation:
                case Create():
                    path = self._tree.own(result) if operation.sequential else operation.path
                    events.append((NodeEvent(path, NodeChange.CREATED), 0))
                case Put():
                    event = NodeEvent(operation.path, NodeChange.CHANGED)
                    events.append((event, version_in(result)))
                case Delete():
                    events.append((NodeEvent(operation.path, NodeChange.DELETED), 0))
        return events

    # ---- after a loss

    async def _is_made(self, operations: Sequence[TreeOperation]) -> bool:
        """Whether the tree is as these operations would have it."""
        wanted: dict[str, tuple[bytes, int] | None] = {}
        for operation in operations:
            match operation:
                case Create(sequential=True):
                    return False
                case Create():
                    wanted[operation.path] = (operation.value, 0)
                case Put():
                    known = wanted.get(operation.path)
                    before = operation.version if known is None else known[1]
                    after = ANY_VERSION if before == ANY_VERSION else before + 1
                    wanted[operation.path] = (operation.value, after)
                case Delete():
                    wanted[operation.path] = None
        nodes = await self._reads.nodes([*wanted])
        for node, expected in zip(nodes, wanted.values(), strict=True):
            if node is None or expected is None:
                if node is not None or expected is not None:
                    return False
            elif node.value != expected[0] or expected[1] not in (ANY_VERSION, node.version):
                return False
        return True

    async def _versions(self, operations: Sequence[TreeOperation]) -> list[int]:
        nodes = await self._reads.nodes([operation.path for operation in operations])
        events = self._events(operations, nodes)
        self._noted(events)
        return [version_in(node) for node in nodes]

    # ---- each on its own

    async def each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check]
    ) -> list[Applied]:
        """Make each change on its own, together with the checks; return the result of each.

        They are tried in groups, one request each, which costs a twentieth. A group that is
        refused is made one by one.
        """
        applied: list[Applied] = []
        for at in range(0, len(operations), _SLICE):
            applied += await self._slice(operations[at : at + _SLICE], checks)
        return applied

    async def _slice(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check]
    ) -> list[Applied]:
        await self.make_missing(await self._missing_above(operations), checks)
        groups = self._groups(operations)
        if len({operation.path for operation in operations}) < len(operations):
            applied: list[Applied] = []
            for group in groups:  # those that follow change the same nodes
                applied += await self._made_in_groups([group], checks)
            return applied
        return await self._made_in_groups(groups, checks)

    def _groups(self, operations: Sequence[TreeOperation]) -> list[list[TreeOperation]]:
        """Split operations; one that cannot be made with others stands alone."""
        groups: list[list[TreeOperation]] = []
        size = MOST_BYTES
        for operation in operations:
            own = self._tree.size_of(operation)
            size += own
            alone = isinstance(operation, Delete) and operation.recursive
            if alone or size > _GROUP_BYTES or len(groups[-1]) >= _GROUP:
                groups.append([])
                size = MOST_BYTES if alone else own
            groups[-1].append(operation)
        return groups

    async def _made_in_groups(
        self, groups: Sequence[Sequence[TreeOperation]], checks: Sequence[Check]
    ) -> list[Applied]:
        changes = [self._group(group, checks) for group in groups]
        begun = self._begun([change for change in changes if change is not None])
        await self._requests.wait_for(begun)
        answers = iter(begun)
        applied: list[Applied] = []
        for group, change in zip(groups, changes, strict=True):
            was_lost = False
            try:
                if change is None:
                    raise Overtaken
                applied += change.own_results(self._finished(change, next(answers)))[len(checks) :]
            except StoreUnavailableError:
                raise
            except (Overtaken, Lost, MetadataStoreError) as error:
                was_lost = isinstance(error, Lost)
                applied += await self._one_by_one(group, checks, was_lost=was_lost)
        return applied

    def _group(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check]
    ) -> PlannedChange | None:
        """One request for several changes; None if it needs to be planned."""
        if isinstance(operations[0], Delete) and operations[0].recursive:
            return None
        change = PlannedChange()
        for check in checks:
            change.add_own(check)
        change.add(*notifications(operations))
        for operation in operations:
            change.add_own(operation)
        if _has_ephemerals(operations):
            change.session_id = self._session_id()
        return None if self._tree.size(change.operations) > MOST_BYTES else change

    async def _one_by_one(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check], *, was_lost: bool
    ) -> list[Applied]:
        """Make each change. Raises the error of a check, and StoreUnavailableError."""
        checked = {check.path for check in checks}
        applied: list[Applied] = []
        for operation in operations:
            try:
                versions = await self._together([*checks, operation], was_lost=was_lost)
            except StoreUnavailableError:
                raise
            except MetadataStoreError as error:
                if error.path in checked and error.path != operation.path:
                    raise
                applied.append(error)
            else:
                applied.append(versions[-1])
        return applied

    # ---- nodes that must be there

    async def _missing_above(self, operations: Sequence[TreeOperation]) -> list[str]:
        """The nodes above those to be made that are not there, parents first."""
        made: set[str] = set()
        wanted: dict[str, None] = {}
        for operation in operations:
            if isinstance(operation, Create):
                parent = parent_of(operation.path)
                if parent and parent not in made:
                    wanted[parent] = None
                made.add(operation.path)
        return await self.missing([*wanted])

    async def missing(self, paths: Sequence[str]) -> list[str]:
        """Which of these nodes, and of those above them, are not there; parents first."""
        missing: dict[str, None] = {}
        looked_at: set[str] = set()
        level = list(paths)
        while level:
            looked_at.update(level)
            above: dict[str, None] = {}
            for path, node in zip(level, await self._reads.nodes(level), strict=True):
                if node is None:
                    missing[path] = None
                    parent = parent_of(path)
                    if parent and parent not in looked_at:
                        above[parent] = None
            level = [*above]
        return sorted(missing, key=lambda path: (path.count("/"), path))

    async def make_missing(self, paths: Sequence[str], checks: Sequence[Check] = ()) -> None:
        """Make nodes without a value, unless somebody else does; `paths` as `missing` gives them.

        Raises the error of a check that does not hold.
        """
        groups = [paths[at : at + _GROUP] for at in range(0, len(paths), _GROUP)]
        changes = []
        for group in groups:
            change = PlannedChange()
            for check in checks:
                change.add_own(check)
            for path in group:
                change.add_own(Create(path))
            changes.append(change)
        # One after the other is begun in this order, so parents are made before those below.
        begun = self._begun(changes)
        await self._requests.wait_for(begun)
        for group, change, waited in zip(groups, changes, begun, strict=True):
            try:
                self._finished(change, waited)
            except (NodeExistsError, Lost, Overtaken):
                for path in group:
                    with suppress(NodeExistsError):
                        await self._together([*checks, Create(path)], was_lost=False)


def _has_ephemerals(operations: Sequence[TreeOperation]) -> bool:
    return any(isinstance(one, Create) and one.ephemeral for one in operations)
