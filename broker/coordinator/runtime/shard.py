"""A shard, as the runtime sees it: all that one partition of a coordinator's topic says."""

from collections.abc import Hashable, Iterator
from typing import Any, Protocol, TypeVar

from broker.coordinator.runtime.in_flight import InFlight, Keyed
from protocol.records.batch import BatchHeader
from protocol.records.record import Record

R = TypeVar("R", bound=Keyed[Hashable])


class Shard(Protocol[R]):
    """State that is replayed from records of the kind `R`."""

    partition: int
    in_flight: InFlight[R]
    """Kept by the runtime; the shard's decisions ask it."""

    def on_timer(self, timer: Any, out: Any) -> None:
        """A timer is over that a decision of this shard has set: `out` takes the next decision."""
        ...

    def replay(self, record: R, offset: int) -> None:
        """One durable record that lies at `offset`: from a write just done, or from the log."""
        ...

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log that is no control record."""
        ...

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction."""
        ...

    def settle(self) -> Iterator[None]:
        """Replay what `load_record` only noted; yields whenever the loop may have its turn."""
        ...
