"""The transaction coordinator's source of producer ids, `broker.cluster.producer_ids`."""

from collections.abc import Callable
from typing import Protocol

from storage.waits import Work

NewProducerId = Callable[[], int]
"""Returns the next producer id. Raises KafkaError when no block of ids is at hand."""


class ProducerIds(Protocol):
    """The part of `ProducerIdAllocator` that is used here."""

    def next_id(self) -> int:
        """A `NewProducerId`."""
        ...

    def note_used(self, producer_id: int) -> None:
        """Note an id that was found in the log: the next ones are above it."""
        ...

    def make_ready(self) -> Work[None]:
        """Take a block of ids unless one is at hand. Raises KafkaError."""
        ...
