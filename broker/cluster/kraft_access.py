"""The access data of a KRaft metadata log: rules, users with passwords, quotas of clients.

The values have the form in which Kafka keeps them in ZooKeeper, and in which `adopted_access`
writes them to the metadata tree. Values that no node can hold (an operation that this version does
not know, a quota of something that Kafka has no quotas of) are in `unknown`, in words.

Sources: `AclControlManager`, `ScramControlManager`, `ClientQuotaControlManager` (4.4),
`ScramCredentialUtils` (3.9).
"""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final

from broker.quotas.entity import TYPES, Entity, is_address
from protocol.acls.rules import Rule
from protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from protocol.schema import Message

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


@dataclass(slots=True)
class KraftAccess:
    """Rules by id, and configs by the node that Kafka in ZooKeeper mode keeps them in."""

    rules: dict[bytes, Rule] = field(default_factory=dict)
    credentials: dict[str, dict[str, str]] = field(default_factory=dict)
    """Node of a user to the user's credentials by mechanism."""
    quotas: dict[str, dict[str, str]] = field(default_factory=dict)
    """Node of an entity to its quotas by key."""
    unknown: dict[object, str] = field(default_factory=dict)
    """The values that are left out, in words, each by a key that identifies the value."""

    def apply(self, value: Message) -> None:
        """Apply one record, of whatever kind."""
        if isinstance(value, AccessControlEntryRecord):
            self._add_rule(value)
        elif isinstance(value, RemoveAccessControlEntryRecord):
            self.rules.pop(value.id, None)
            self.unknown.pop(value.id, None)
        elif isinstance(value, UserScramCredentialRecord):
            self._add_credential(value)
        elif isinstance(value, RemoveUserScramCredentialRecord):
            _remove(self.credentials, _user(value.name), MECHANISMS.get(value.mechanism, ""))
            self.unknown.pop((value.name, value.mechanism), None)
        elif isinstance(value, ClientQuotaRecord):
            self._set_quota(value)

    def _add_rule(self, value: AccessControlEntryRecord) -> None:
        rule = Rule.of_codes(
            value.resource_type,
            value.resource_name,
            value.pattern_type,
            value.principal,
            value.host,
            value.operation,
            value.permission_type,
        )
        words = rule.resource_type, rule.pattern_type, rule.operation, rule.permission_type
        if 0 in words:
            self.unknown[value.id] = (
                f"a rule about {value.resource_name} for {value.principal} with a type or operation"
                " that is not known here"
            )
        else:
            self.rules[value.id] = rule

    def _add_credential(self, value: UserScramCredentialRecord) -> None:
        mechanism = MECHANISMS.get(value.mechanism)
        if mechanism is None:
            self.unknown[value.name, value.mechanism] = (
                f"a password of user {value.name} for a mechanism that is not known here"
            )
            return
        self.credentials.setdefault(_user(value.name), {})[mechanism] = (
            f"salt={_text(value.salt)},stored_key={_text(value.stored_key)},"
            f"server_key={_text(value.server_key)},iterations={value.iterations}"
        )

    def _set_quota(self, value: ClientQuotaRecord) -> None:
        parts = {one.entity_type: one.entity_name for one in value.entity}
        entity = _entity(parts)
        key = None if entity is None else entity.keys.get(value.key)
        about = tuple(sorted(parts.items(), key=repr)), value.key
        self.unknown.pop(about, None)
        if value.remove:
            if entity is not None:
                _remove(self.quotas, entity.path, value.key)
        elif entity is None or key is None or key.flaw(value.value) is not None:
            named = ", ".join(f"{kind} {name or 'by default'}" for kind, name in parts.items())
            self.unknown[about] = f"the quota {value.key}={value.value} of {named}"
        else:
            self.quotas.setdefault(entity.path, {})[value.key] = key.text(value.value)


def _remove(nodes: dict[str, dict[str, str]], path: str, key: str) -> None:
    own = nodes.get(path, {})
    own.pop(key, None)
    if not own:
        nodes.pop(path, None)


def _entity(parts: dict[str, str | None]) -> Entity | None:
    """The entity with these parts; None if there are no quotas of such an entity."""
    if not parts or not parts.keys() <= set(TYPES) or "" in parts.values():
        return None
    entity = Entity.of(parts)
    if "ip" in parts and (len(parts) > 1 or not is_address(parts["ip"] or "::")):
        return None
    return entity


def _user(name: str) -> str:
    return Entity(user=name).path


def _text(data: bytes | bytearray | memoryview) -> str:
    return b64encode(data).decode()
