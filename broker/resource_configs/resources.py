"""Which resources have configs, and how requests name them (Kafka's `ConfigResource`)."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Access, Name, Names, Operation, ResourceType
from protocol.errors import ErrorCode, KafkaError


class ConfigResourceType(IntEnum):
    """Types of resources as they travel."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterConfigOp(IntEnum):
    """What IncrementalAlterConfigs does with one key."""

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


_OF_THE_CLUSTER: Final = frozenset(
    (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS)
)


def accesses(operation: Operation) -> tuple[Access, ...]:
    """`operation` on the resources whose configs a request is about."""

    def named(kind: ConfigResourceType) -> Names:
        return lambda ctx, request: (
            resource.resource_name
            for resource in request.resources
            if resource.resource_type == kind
        )

    def cluster(ctx: RequestContext, request: Any) -> Iterable[Name]:
        if any(resource.resource_type in _OF_THE_CLUSTER for resource in request.resources):
            yield CLUSTER_NAME

    return (
        Access(ResourceType.TOPIC, operation, named(ConfigResourceType.TOPIC)),
        Access(ResourceType.GROUP, operation, named(ConfigResourceType.GROUP)),
        Access(ResourceType.CLUSTER, operation, cluster),
    )
