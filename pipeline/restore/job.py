"""What a task is told: values, because a task runs in another process."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SendJob:
    """How to send, the same for all partitions of a restore."""

    name: str
    """Of the restore: its transactional ids begin with it."""
    bootstrap: str
    records_per_transaction: int = 10_000
    bytes_per_transaction: int = 32_000_000
    compression: str = "lz4"
    offset_header: str | None = None
    """A header that gets the position as decimal digits."""
    client: dict[str, Any] = field(default_factory=dict)
    """Settings of librdkafka."""

    @property
    def group(self) -> str:
        """The consumer group whose offsets are the progress."""
        return self.name

    def transactional_id(self, topic: str, partition: int) -> str:
        """The same for each attempt at a partition, and for no other one."""
        return f"{self.name}-{topic}-{partition}"
