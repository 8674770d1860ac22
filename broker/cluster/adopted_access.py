"""Takes over what another broker's KRaft log says about access, at an adoption.

Rules
1. Access rules, users with passwords and quotas go to the nodes where Kafka in ZooKeeper mode has
   them. Values that are there already stay: the rules of one pattern are put together, and this
   broker's value of a config counts.
2. They are taken once, at the first adoption that finds any (`TAKEN` marks it). Otherwise a later
   adoption would bring back what was removed here.
3. Values that no node can hold are left out and reported: a rule that denies may be among them.

Used by `broker.cluster.adoption`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from broker.cluster.acl_nodes import decode_rules, encode_rules, node_path
from broker.cluster.kraft_access import KraftAccess
from broker.cluster.metadata_store import Create, MetadataStore, Put, TreeOperation
from broker.cluster.tree_values import decode_config, encode_config
from protocol.acls.rules import Pattern, Rule
from storage.waits import PAUSE

TAKEN: Final = "/pykafkalog/adopted_access"
"""This broker's own node: Kafka has none of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessVerdict:
    """The numbers of values that are taken over, and in words those that are not."""

    rules: int = 0
    users: int = 0
    quotas: int = 0
    """Users, client ids and addresses that have some."""
    left_out: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether anything is taken."""
        return bool(self.rules or self.users or self.quotas)

    def __str__(self) -> str:
        return f"{self.rules} access rules, {self.users} users, quotas of {self.quotas} clients"


async def plan_access(
    store: MetadataStore, found: KraftAccess | None
) -> tuple[AccessVerdict, list[TreeOperation]]:
    """Decide, and return the changes of the store that carry it out. Raises MetadataStoreError."""
    if found is None or await store.get(TAKEN) is not None:
        return AccessVerdict(), []
    verdict = AccessVerdict(
        rules=len(set(found.rules.values())),
        users=len(found.credentials),
        quotas=len(found.quotas),
        left_out=tuple(sorted(found.unknown.values())),
    )
    if not verdict.is_any:
        return verdict, []
    operations: list[TreeOperation] = [Create(TAKEN)]
    for pattern, rules in _by_pattern(found.rules.values()).items():
        path = node_path(pattern)
        node = await store.get(path)
        if node is None:
            operations.append(Create(path, encode_rules(rules)))
        else:
            together = rules | decode_rules(pattern, node.value)
            operations.append(Put(path, encode_rules(together)))
        await PAUSE
    for path in sorted({*found.credentials, *found.quotas}):
        config = {**found.credentials.get(path, {}), **found.quotas.get(path, {})}
        node = await store.get(path)
        if node is None:
            operations.append(Create(path, encode_config(config)))
        else:
            own = decode_config(path, node.value) if node.value else {}
            operations.append(Put(path, encode_config({**config, **own})))
        await PAUSE
    return verdict, operations


def _by_pattern(rules: Iterable[Rule]) -> dict[Pattern, set[Rule]]:
    found: dict[Pattern, set[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.pattern, set()).add(rule)
    return found
