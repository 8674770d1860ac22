"""The values that a task gets: a task runs in another process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

BATCH_BYTES: Final = 1_000_000
"""The most bytes of a batch, librdkafka's default."""
_EVER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The configs by which a topic refuses rows."""

    message_bytes: int
    """The most bytes of a batch as it is stored."""
    before_ms: int
    after_ms: int
    """How far a timestamp may be from the broker's clock."""
    needs_keys: bool

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Self:
        """Return the limits in a topic's configs; one that the broker does not know is none."""
        return cls(
            int(configs.get("max.message.bytes", BATCH_BYTES)),
            int(configs.get("message.timestamp.before.max.ms", _EVER)),
            int(configs.get("message.timestamp.after.max.ms", _EVER)),
            "compact" in configs.get("cleanup.policy", ""),
        )

    @property
    def batch_bytes(self) -> int:
        """The most bytes of a batch that a client makes of several rows: no broker splits one."""
        return max(min(self.message_bytes, BATCH_BYTES), 1)


@dataclass(frozen=True, slots=True)
class SendJob:
    """How to send the partitions of a restore."""

    name: str
    """The restore's name, with which its transactional ids begin."""
    bootstrap: str
    records_per_transaction: int = 10_000
    bytes_per_transaction: int = 32_000_000
    compression: str = "lz4"
    offset_header: str | None = None
    """Name of a header for the position, in decimal digits; None for no header."""
    date_0_as: int | None = None
    """The timestamp of rows dated 0, which librdkafka would date now; None: they are refused."""
    client: dict[str, Any] = field(default_factory=dict)
    """Settings of librdkafka."""
    limits: Mapping[str, TopicLimits] = field(default_factory=dict)
    """By topic."""

    @property
    def group(self) -> str:
        """The consumer group whose offsets are the restore's progress."""
        return self.name

    def transactional_id(self, topic: str, partition: int) -> str:
        """Return a partition's transactional id, the same for each attempt at it."""
        return f"{self.name}-{topic}-{partition}"
