"""Small values that every room shares: partition names, ids, sentinels of the wire format."""

import base64
from typing import Final, NamedTuple

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1
"""After it comes sequence 0."""
NO_LEADER_EPOCH: Final = -1
ZERO_UUID: Final = bytes(16)

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


class TopicPartition(NamedTuple):
    """One partition of a topic; prints as Kafka does (`topic-0`)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_to_text(value: bytes) -> str:
    """16 raw bytes as Kafka writes ids: base64url without padding, 22 characters."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes behind Kafka's text form. Raises ValueError when it is not one."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(text) != 22 or len(value) != 16:  # the decoder drops characters outside its alphabet
        raise ValueError(f"not a 16-byte id: {text!r}")
    return value
