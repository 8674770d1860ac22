"""Which resources have configs, and how requests name them (Kafka's `ConfigResource`)."""

from enum import IntEnum

from protocol.errors import ErrorCode, KafkaError


class ResourceType(IntEnum):
    """Types of resources as they travel."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_broker_name(name: str, broker_id: int) -> None:
    """Raises KafkaError INVALID_REQUEST unless `name` is this broker's id."""
    try:
        asked = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        ) from None
    if asked != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id} or empty string, but received {name}",
        )


def unsupported(resource_type: int) -> KafkaError:
    """The refusal for a type of resource that has no configs here."""
    try:
        name = ResourceType(resource_type).name
    except ValueError:
        name = str(resource_type)
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {name}")
