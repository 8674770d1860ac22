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


class Operation(IntEnum):
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
        name = ResourceType(resource_type).name
    except ValueError:
        name = str(resource_type)
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {name}")
