"""The settings that the log cleaner's threads are made with.

`broker.cleaner.log_cleaner` makes its threads anew when one of them changes.
"""

from dataclasses import dataclass
from typing import Final

from config.broker_config import BrokerConfig

MOST_MAP_BYTES: Final = 2**31 - 1
"""The largest offset map of one loop, as in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Settings of all loops together. Sizes are bytes."""

    threads: int
    dedupe_buffer_size: int
    load_factor: float
    io_buffer_size: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> "CleanerSettings":
        """Take the settings from the broker's current configuration."""
        return cls(
            threads=config.log_cleaner_threads,
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            load_factor=config.log_cleaner_io_buffer_load_factor,
            io_buffer_size=config.log_cleaner_io_buffer_size,
        )

    @property
    def map_bytes(self) -> int:
        """Bytes of one loop's offset map."""
        return min(self.dedupe_buffer_size // max(self.threads, 1), MOST_MAP_BYTES)

    @property
    def io_buffer_bytes(self) -> int:
        """Bytes of one loop's read buffer; its write buffer takes as much."""
        return self.io_buffer_size // max(self.threads, 1) // 2
