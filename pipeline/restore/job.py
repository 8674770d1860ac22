"""The values that a task gets: a task runs in another process."""

from dataclasses import dataclass, field
from typing import Any


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
    client: dict[str, Any] = field(default_factory=dict)
    """Settings of librdkafka."""

    @property
    def group(self) -> str:
        """The consumer group whose offsets are the restore's progress."""
        return self.name

    def transactional_id(self, topic: str, partition: int) -> str:
        """Return a partition's transactional id, the same for each attempt at it."""
        return f"{self.name}-{topic}-{partition}"
