"""Which resources have configs, and how requests name them (Kafka's `ConfigResource`)."""

from enum import IntEnum
from typing import Final

from broker.request import RequestContext
from broker.security.access import (
    CLUSTER_NAME,
    DENIED,
    Operation,
    Question,
    ResourceType,
)
from broker.security.permissions import Permissions
from protocol.errors import ErrorCode, KafkaError


class ConfigResourceType(IntEnum):
    """Types of resources by their codes on the wire."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterConfigOp(IntEnum):
    """The operations of IncrementalAlterConfigs on one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def check_broker_name(name: str, broker_id: int, *, may_be_empty: bool = True) -> None:
    """Raises KafkaError INVALID_REQUEST unless `name` is this broker's id.

    `may_be_empty` changes the message only: whether it says that an empty name is valid, too.
    """
    try:
        asked = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        ) from None
    if asked != broker_id:
        expected = f"{broker_id} or empty string," if may_be_empty else f"{broker_id}"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected} but received {name}",
        )


def unsupported(resource_type: int) -> KafkaError:
    """The refusal for a type of resource that has no configs here."""
    try:
        name = ConfigResourceType(resource_type).name
    except ValueError:
        name = str(resource_type)
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {name}")


_OWNERS: Final = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
    ConfigResourceType.BROKER: ResourceType.CLUSTER,
    ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
}
"""The type of resource whose access rules decide, by the type that has the configs."""


def questions(operation: Operation) -> tuple[Question, ...]:
    """The checks of `operation` on the resources whose configs a request names."""
    return tuple(Question(kind, operation) for kind in dict.fromkeys(_OWNERS.values()))


def check_allowed(
    allowed: Permissions | None,
    ctx: RequestContext,
    operation: Operation,
    resource_type: int,
    name: str,
) -> None:
    """Raise KafkaError if the client may not do `operation` with a resource's configs.

    A type of resource that is not known has no access rules; the handler of the request refuses it.
    """
    if allowed is None or resource_type not in _OWNERS:
        return
    kind = _OWNERS[ConfigResourceType(resource_type)]
    if not allowed(ctx, operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name):
        raise KafkaError(DENIED[kind])
