"""The access rules of the cluster: kept in the metadata tree, held in memory, changed by requests.

Rules
1. A change is durable, and in memory, when its request is answered. It is made whole or not at all.
2. The index follows a watch of the tree, so it sees the changes of every writer. If a node cannot
   be read while the broker runs, the index keeps its rules, with an error in the log.
3. Remembered decisions are dropped with every change (`follow`).
4. A reader of rules one after the other holds the lock, so that they do not change meanwhile.
5. While many rules of one pattern change, nobody is allowed what the rules before and after deny.

Sources: `AclControlManager`, `AclApis` (4.4), `AclAuthorizer` (3.9).
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from broker.cluster.acl_nodes import (
    ROOTS,
    decode_rules,
    encode_rules,
    node_path,
    pattern_of,
)
from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStore,
    Put,
    StoredNode,
    TreeOperation,
)
from broker.cluster.planned_write import ATTEMPTS, IN_THE_WAY
from broker.cluster.refusals import store_errors_told
from protocol.acls.filters import RuleFilter
from protocol.acls.index import RuleIndex
from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import PermissionType
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE, Lock, Work, call

logger = logging.getLogger(__name__)

T = TypeVar("T")
Changed = dict[Pattern, set[Rule]]
"""The rules that patterns are to have."""


MOST_DELETED: Final = 10_000
"""Rules that one request may delete; one that two filters select counts twice (Kafka's limit)."""
LARGE_NODE: Final = 64
"""Rules of one pattern above which a thread writes and reads the node: it takes a millisecond."""
LARGE_VALUE: Final = 8_192
"""Bytes of so many rules, about."""


class AclStore:
    """All rules, and their changes."""

    def __init__(self, store: MetadataStore, index: RuleIndex) -> None:
        """`index` must be empty, and belongs to this object from now on."""
        self.index = index
        self._store = store
        self._changing = Lock()
        self._followers: list[Callable[[], None]] = []
        self._changed = ChangedNodes(
            store, ROOTS.values(), what="Access rules", node_of=lambda path: path, apply=self._apply
        )

    def follow(self, tell: Callable[[], None]) -> None:
        """Call `tell` after each change."""
        self._followers.append(tell)

    # ---- from the tree to the index

    async def load(self) -> None:
        """Read all rules. Raises BadValueError."""
        async with self._changing:
            for root in ROOTS.values():
                for kind in await self._store.children(root):
                    for name in await self._store.children(f"{root}/{kind}"):
                        path = f"{root}/{kind}/{name}"
                        await self._apply(path, await self._store.get(path))
                        await PAUSE
        if len(self.index):
            logger.info("Loaded %d access rules", len(self.index))

    async def run(self) -> None:
        """Follow the changes of all writers, until ended."""
        await self._changed.run(self._changing)

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        pattern = pattern_of(path)
        if pattern is None:
            return
        value = b"" if node is None else node.value
        now = await self._decoded(pattern, value)
        before = await self._rules_of(pattern)
        # A decision may fall between two steps. Denials are added first and removed last, and
        # allowances are added before others go, because a resource without rules may be open to all
        # (`allow.everyone.if.no.acl.found`).
        add, remove = self.index.add, self.index.remove
        changed = await self._each(add, now, before, PermissionType.DENY)
        changed |= await self._each(add, now, before, PermissionType.ALLOW)
        changed |= await self._each(remove, before, now, PermissionType.ALLOW)
        changed |= await self._each(remove, before, now, PermissionType.DENY)
        if changed:
            for tell in self._followers:
                tell()

    async def _decoded(self, pattern: Pattern, value: bytes) -> set[Rule]:
        if len(value) > LARGE_VALUE:
            return await call(decode_rules, pattern, value)
        return decode_rules(pattern, value)

    async def _rules_of(self, pattern: Pattern) -> set[Rule]:
        found = set()
        for rule in self.index.rules_of(pattern):
            found.add(rule)
            await PAUSE
        return found

    @staticmethod
    async def _each(
        change: Callable[[Rule], bool],
        some: set[Rule],
        others: set[Rule],
        permission: PermissionType,
    ) -> bool:
        """Change the index by the rules of a permission that are not among others."""
        changed = False
        for rule in some:
            if rule.permission_type is permission and rule not in others:
                changed |= change(rule)
            await PAUSE
        return changed

    # ---- requests

    async def select(self, chosen: RuleFilter) -> list[Rule]:
        """Return the rules that a filter selects, those of one pattern together."""
        async with self._changing:
            return await self._select(chosen, None)

    async def _select(self, chosen: RuleFilter, most: int | None) -> list[Rule]:
        found: list[Rule] = []
        only = chosen.only_pattern
        for pattern in self.index.patterns() if only is None else (only,):
            if chosen.fits_pattern(pattern):
                for rule in self.index.rules_of(pattern):
                    if chosen.fits_entry(rule):
                        found.append(rule)
                        if most is not None and len(found) > most:
                            raise KafkaError(
                                ErrorCode.INVALID_REQUEST,
                                f"Cannot remove more than {MOST_DELETED} acls in a single delete "
                                "operation.",
                            )
                    await PAUSE
            await PAUSE
        return found

    async def create(self, rules: Iterable[Rule]) -> None:
        """Add rules; those that are there already stay. Raises KafkaError."""
        added = tuple(rules)

        async def plan() -> tuple[None, Changed]:
            changed: Changed = {}
            for rule in added:
                if rule not in self.index:
                    if rule.pattern not in changed:
                        changed[rule.pattern] = await self._rules_of(rule.pattern)
                    changed[rule.pattern].add(rule)
                await PAUSE
            return None, changed

        async with self._changing:
            await self._write(plan)

    async def delete(self, filters: Iterable[RuleFilter]) -> list[list[Rule]]:
        """Remove the rules that any filter selects; return those of each. Raises KafkaError."""
        chosen_by = tuple(filters)

        async def plan() -> tuple[list[list[Rule]], Changed]:
            selected: list[list[Rule]] = []
            left = MOST_DELETED
            changed: Changed = {}
            for chosen in chosen_by:
                found = await self._select(chosen, left)
                left -= len(found)
                selected.append(found)
                for rule in found:
                    if rule.pattern not in changed:
                        changed[rule.pattern] = await self._rules_of(rule.pattern)
                    changed[rule.pattern].discard(rule)
                    await PAUSE
            return selected, changed

        async with self._changing:
            return await self._write(plan)

    async def _write(self, plan: Callable[[], Work[tuple[T, Changed]]]) -> T:
        """Make the changes that `plan` makes of the index, all or none; return its result.

        The index has them then. If another broker has changed one of the nodes, which the index
        did not know of yet, it is read and the changes are planned again, as in Kafka
        (`AclAuthorizer.updateResourceAcls`): else a rule of his would be lost, perhaps a denial.
        """
        for attempt in range(ATTEMPTS):
            result, changed = await plan()
            paths = [node_path(pattern) for pattern in changed]
            with store_errors_told():
                operations = await self._operations(changed)
                try:
                    if operations is not None:
                        if operations:
                            await self._store.apply(operations)
                            await self._changed.catch_up_if_possible()
                        return result
                except IN_THE_WAY:
                    if attempt == ATTEMPTS - 1:
                        raise
            self._changed.note(paths)
            await self._changed.catch_up_if_possible()
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Other brokers change these rules all the time."
        )

    async def _operations(self, changed: Changed) -> list[TreeOperation] | None:
        """Return the operations that give each pattern its rules; None if the index is behind."""
        operations: list[TreeOperation] = []
        for pattern, rules in changed.items():
            path = node_path(pattern)
            node = await self._store.get(path)
            there = await self._decoded(pattern, b"" if node is None else node.value)
            if there != await self._rules_of(pattern):
                return None
            if len(rules) > LARGE_NODE:
                value = await call(encode_rules, tuple(rules))
            else:
                value = encode_rules(rules)
            if node is None:
                operations.append(Create(path, value))
            elif rules:
                operations.append(Put(path, value, node.version))
            else:
                operations.append(Delete(path, node.version))
            await PAUSE
        return operations
