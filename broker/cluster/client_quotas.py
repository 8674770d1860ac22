"""The quotas that are set, as they stand in the metadata tree, and how they are changed (S-QTA-8).

A watch of the tree says which entities have changed; their nodes are read again, and `Quotas` gets
the differences. So it makes no difference who has written the tree. A change that is made here is
in force when it is answered, also for connections that are open.

A user's node also holds configs that are no quotas (SCRAM credentials): a change keeps them, and a
node that somebody else has changed meanwhile is read again before it is written.

Source: `ClientQuotaControlManager`, `ClientQuotasImage`; the paths are `kafka.zk.AdminZkClient`'s
(3.9).
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStore,
    Put,
    StoredNode,
    TreeOperation,
)
from broker.cluster.planned_write import write_planned
from broker.cluster.refusals import store_errors_told
from broker.cluster.tree_values import BadValueError, decode_config, encode_config
from broker.quotas.entity import (
    ABSENT,
    TYPES,
    USERS,
    WATCHED,
    Entity,
    entity_at,
    is_address,
)
from broker.quotas.quotas import Quotas
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE, Lock

log = logging.getLogger(__name__)


class QuotaOperation(NamedTuple):
    """One quota of an alteration: its key and value; without a value it is removed."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes of the quotas of one entity."""

    parts: Mapping[str, str | None]
    """The entity as it was named: names by type, None for the default."""
    operations: Sequence[QuotaOperation]


class ClientQuotas:
    """The quotas in the tree. `entities` can be read at any time without waiting."""

    def __init__(self, store: MetadataStore, quotas: Quotas) -> None:
        self._store = store
        self._quotas = quotas
        self.entities: dict[Entity, dict[str, float]] = {}
        """Values by key of each entity that has any."""
        self._altering = Lock()
        self._changed = ChangedNodes(
            store, WATCHED, what="Quotas", node_of=_node_of, apply=self._apply
        )
        self.catch_up = self._changed.catch_up
        self.run = self._changed.run

    # ---- from the tree

    async def load(self) -> None:
        """Put all quotas of the tree in force. Raises MetadataStoreError."""
        for path in WATCHED:
            names = await self._store.children(path)
            self._changed.note(f"{path}/{name}" for name in names)
            for user in names if path == USERS else ():
                clients = f"{path}/{user}/clients"
                for client_id in await self._store.children(clients):
                    self._changed.note((f"{clients}/{client_id}",))
        await self.catch_up()

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        entity = entity_at(path)
        assert entity is not None
        before = self.entities.get(entity, {})
        now = _values(entity, node)
        for key in before.keys() | now.keys():
            if before.get(key) != now.get(key):
                self._quotas.change(entity, key, now.get(key))
                log.info("The quota %s of %s is %s", key, entity, now.get(key, "removed"))
        if now:
            self.entities[entity] = now
        else:
            self.entities.pop(entity, None)

    # ---- changes

    async def alter(
        self, alterations: Sequence[Alteration], *, validate_only: bool = False
    ) -> list[tuple[Mapping[str, str | None], KafkaError | None]]:
        """Change the quotas of entities; return each entity once, with its refusal or None.

        The alterations that are not refused are made together. An entity that is named twice is
        refused, though its first alteration is made, as in Kafka. Raises KafkaError
        UNKNOWN_SERVER_ERROR if the tree cannot be written.
        """
        results: dict[tuple[tuple[str, str | None], ...], KafkaError | None] = {}
        wanted: dict[Entity, dict[str, float | None]] = {}
        for one in alterations:
            name = tuple(sorted(one.parts.items(), key=lambda part: part[0]))
            try:
                if name in results:
                    raise _invalid(f"Ignoring duplicate entity {dict(name)}")
                results[name] = None
                changes = _changes(one)
                wanted[Entity.of(one.parts)] = changes
            except KafkaError as error:
                results[name] = error.with_traceback(None)
            await PAUSE
        if wanted and not validate_only:
            async with self._altering:
                await self._write(wanted)
        return [(dict(name), error) for name, error in results.items()]

    async def _write(self, wanted: Mapping[Entity, Mapping[str, float | None]]) -> None:
        async def plan() -> list[TreeOperation]:
            operations: list[TreeOperation] = []
            # A user's node is made before those below it, which would make it empty.
            for entity, changes in sorted(wanted.items(), key=lambda item: item[0].path):
                operations += await self._operations(entity, changes)
                await PAUSE
            return operations

        with store_errors_told():
            await write_planned(self._store, plan)
        await self.catch_up()

    async def _operations(
        self, entity: Entity, changes: Mapping[str, float | None]
    ) -> list[TreeOperation]:
        """The operation that brings the changes into the entity's node; none if it has them."""
        path = entity.path
        node = await self._store.get(path)
        before = _config(path, node)
        config = dict(before)
        for key, value in changes.items():
            if value is None:
                config.pop(key, None)
            else:
                config[key] = entity.keys[key].text(value)
        if config == before:
            return []
        if node is None:
            return [Create(path, encode_config(config))]
        if not config and not await self._store.children(path):
            return [Delete(path, node.version)]
        return [Put(path, encode_config(config), node.version)]


def _node_of(path: str) -> str | None:
    entity = entity_at(path)
    return None if entity is None else entity.path


def _config(path: str, node: StoredNode | None) -> dict[str, str]:
    """All configs of the node. A node that is there only for those below it is empty."""
    return {} if node is None or not node.value else decode_config(path, node.value)


def _values(entity: Entity, node: StoredNode | None) -> dict[str, float]:
    """The quotas in a node. Those that cannot be read are left out, and the log names them."""
    try:
        config = _config(entity.path, node)
    except BadValueError as error:
        log.error("Quotas that cannot be read: %s", error)
        return {}
    values = {}
    for key, known in entity.keys.items():
        if key in config:
            try:
                value = float(config[key])
            except ValueError:
                value = math.nan
            flaw = known.flaw(value)
            if flaw is None:
                values[key] = value
            else:
                log.error("Left out of the quotas of %s: %s=%s. %s", entity, key, config[key], flaw)
    return values


def _changes(alteration: Alteration) -> dict[str, float | None]:
    """The values by key, None to remove one. Raises KafkaError INVALID_REQUEST."""
    changes: dict[str, float | None] = {}
    for key, value in alteration.operations:
        if key in changes:
            raise _invalid(f"Duplicate quota key {key}")
        changes[key] = value
    entity = _checked(alteration.parts)
    for key, value in changes.items():
        if value is None:
            continue
        known = entity.keys.get(key)
        if known is None:
            raise _invalid(f"Invalid configuration key {key}")
        flaw = known.flaw(value)
        if flaw is not None:
            raise _invalid(flaw)
    return {key: value for key, value in changes.items() if key in entity.keys}


def _checked(parts: Mapping[str, str | None]) -> Entity:
    """The entity. Raises KafkaError INVALID_REQUEST."""
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    entity = Entity.of(parts)
    if entity.ip is not ABSENT:
        if len(parts) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity should not be combined with User or "
                "ClientId"
            )
        if isinstance(entity.ip, str) and not is_address(entity.ip):
            raise _invalid(f"{entity.ip} is not a valid IP. Names of hosts are not resolved here.")
    return entity


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
