"""Kafka's notification nodes: by them brokers tell each other which nodes of a tree to read again.

To watch each topic's configs would take a watch per topic. So a broker that changes a node of such
a tree makes a sequential node below the tree's log as well, whose value names the changed node, and
all brokers watch the children of the log alone.

    tree                      notifications, and what they hold
    /config                   /config/changes/config_change_<number>
                              {"version":2,"entity_path":"topics/t"}
    /kafka-acl                /kafka-acl-changes/acl_changes_<number>
                              TOPIC:t
    /kafka-acl-extended       /kafka-acl-extended-changes/acl_changes_<number>
                              {"version":1,"resourceType":"TOPIC","name":"t",
                               "patternType":"PREFIXED"}
    /delegation_token/tokens  /delegation_token/token_changes/token_change_<number>
                              the token's id

A notification that cannot be read names nothing: Kafka logs it and goes on.

Sources: `kafka.zk.ZkData`, `kafka.server.ZkConfigManager`, `kafka.zk.AdminZkClient`,
`kafka.common.ZkNodeChangeNotificationListener` (3.9).
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from broker.cluster.acl_nodes import LITERAL_RULES, node_path, pattern_of
from broker.cluster.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStoreError,
    Put,
    TreeOperation,
)
from broker.cluster.tree_values import (
    DELEGATION_TOKENS,
    TOPIC_CONFIGS,
    delegation_token_path,
    encode,
    topic_path,
)
from protocol.acls.rules import Pattern
from protocol.acls.vocabulary import PatternType, ResourceType, from_name

EXPIRES_AFTER_MS: Final = 15 * 60 * 1000
"""Age at which a notification is removed: every broker has long read it."""

_CONFIGS: Final = "/config/"
_CONFIG_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")
_VERSION_1_TYPES: Final = ("topics", "clients")
_PREFIXED_ROOT: Final = "/kafka-acl-extended"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """One tree and its log."""

    tree: str
    root: str
    """The node whose children are the notifications."""
    prefix: str
    """The begin of the notifications' names; ten digits follow."""
    encode: Callable[[str], bytes | None]
    """The value that names a node of the tree; None for a node that is never named."""
    decode: Callable[[bytes], str | None]
    """The node that a value names; None if it cannot be read."""

    def has(self, path: str) -> bool:
        """Whether the log has notifications for the node at `path`."""
        return f"{path}/".startswith(f"{self.tree}/") and not f"{path}/".startswith(f"{self.root}/")

    def notification(self, value: bytes) -> Create:
        """The operation that makes a notification."""
        return Create(f"{self.root}/{self.prefix}", value, sequential=True)

    def number(self, name: str) -> int | None:
        """The number of a notification by its name; None for another node."""
        digits = name.removeprefix(self.prefix)
        return int(digits) if digits != name and digits.isdecimal() else None


def _encode_config(path: str) -> bytes | None:
    entity = path.removeprefix(_CONFIGS)
    kind, _, name = entity.partition("/")
    if kind not in _CONFIG_TYPES or not name:
        return None
    if kind == "users" and name.endswith("/clients"):  # between a user and a client id
        return None
    return encode({"version": 2, "entity_path": entity})


def _decode_config(value: bytes) -> str | None:
    told = _object(value)
    match told.get("version"):
        case 1:
            kind, name = told.get("entity_type"), told.get("entity_name")
            if kind in _VERSION_1_TYPES and isinstance(name, str):
                return f"{_CONFIGS}{kind}/{name}"
        case 2:
            entity = told.get("entity_path")
            if isinstance(entity, str) and entity.partition("/")[0] in _CONFIG_TYPES:
                return _CONFIGS + entity
    return None


def _object(value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pattern(path: str) -> Pattern | None:
    try:
        return pattern_of(path)
    except MetadataStoreError:
        return None


def _encode_literal(path: str) -> bytes | None:
    pattern = _pattern(path)
    return None if pattern is None else f"{pattern.resource_type.name}:{pattern.name}".encode()


def _decode_literal(value: bytes) -> str | None:
    kind, colon, name = value.decode("utf-8", "replace").partition(":")
    return _rules_of(kind, name, PatternType.LITERAL) if colon else None


def _encode_prefixed(path: str) -> bytes | None:
    pattern = _pattern(path)
    if pattern is None:
        return None
    return encode(
        {
            "version": 1,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def _decode_prefixed(value: bytes) -> str | None:
    told = _object(value)
    kind, name, pattern = (told.get(key) for key in ("resourceType", "name", "patternType"))
    if not isinstance(kind, str) or not isinstance(name, str) or pattern != "PREFIXED":
        return None
    return _rules_of(kind, name, PatternType.PREFIXED)


def _rules_of(kind: str, name: str, pattern_type: PatternType) -> str | None:
    resource_type = from_name(ResourceType, kind)
    if resource_type is None or resource_type <= ResourceType.ANY or not name:
        return None
    return node_path(Pattern(resource_type, name, pattern_type))


def _encode_token(path: str) -> bytes | None:
    token_id = path.removeprefix(DELEGATION_TOKENS + "/")
    return None if token_id == path or "/" in token_id else token_id.encode()


def _decode_token(value: bytes) -> str | None:
    token_id = value.decode("utf-8", "replace")
    return delegation_token_path(token_id) if token_id and "/" not in token_id else None


CONFIG_CHANGES: Final = ChangeLog(
    tree="/config",
    root="/config/changes",
    prefix="config_change_",
    encode=_encode_config,
    decode=_decode_config,
)
LITERAL_RULE_CHANGES: Final = ChangeLog(
    tree=LITERAL_RULES,
    root="/kafka-acl-changes",
    prefix="acl_changes_",
    encode=_encode_literal,
    decode=_decode_literal,
)
PREFIXED_RULE_CHANGES: Final = ChangeLog(
    tree=_PREFIXED_ROOT,
    root="/kafka-acl-extended-changes",
    prefix="acl_changes_",
    encode=_encode_prefixed,
    decode=_decode_prefixed,
)
TOKEN_CHANGES: Final = ChangeLog(
    tree=DELEGATION_TOKENS,
    root="/delegation_token/token_changes",
    prefix="token_change_",
    encode=_encode_token,
    decode=_decode_token,
)
CHANGE_LOGS: Final = (
    CONFIG_CHANGES,
    LITERAL_RULE_CHANGES,
    PREFIXED_RULE_CHANGES,
    TOKEN_CHANGES,
)


def log_of(path: str) -> ChangeLog | None:
    """The log that tells of the node at `path`, if there is one."""
    return next((log for log in CHANGE_LOGS if log.has(path)), None)


def notifications(operations: Collection[TreeOperation]) -> list[Create]:
    """The notifications that go with changes of the tree: one for each node that a log tells of.

    As in Kafka there is none for the configs of a topic that is made by the same changes, and none
    for those that are deleted with their topic.
    """
    made = {operation.path for operation in operations if isinstance(operation, Create)}
    told: dict[tuple[str, bytes], Create] = {}
    for operation in operations:
        if isinstance(operation, Check):
            continue
        path = operation.path
        log = log_of(path)
        if log is None or _belongs_to_a_topic(operation, made):
            continue
        value = log.encode(path)
        if value is not None:
            told[log.root, value] = log.notification(value)
    return list(told.values())


def _belongs_to_a_topic(operation: Create | Put | Delete, made: Collection[str]) -> bool:
    kind, _, topic = operation.path.rpartition("/")
    if kind != TOPIC_CONFIGS:
        return False
    return isinstance(operation, Delete) or (
        isinstance(operation, Create) and topic_path(topic) in made
    )
