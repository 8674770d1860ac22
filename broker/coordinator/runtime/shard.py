"""A shard, as the runtime sees it: the state of one partition of a coordinator's topic."""

from typing import Any, Protocol, TypeVar

from broker.coordinator.runtime.in_flight import InFlight, Keyed
from protocol.records.batch import BatchHeader
from protocol.records.record import Record

R = TypeVar("R", bound=Keyed)


class Shard(Protocol[R]):
    """State that is replayed from records of type `R`."""

    partition: int
    in_flight: InFlight[R]
    """Changed by the runtime only; the shard's decisions read it."""

    def on_timer(self, timer: Any, out: Any) -> None:
        """A timer fired that a decision of this shard had set; `out` takes the next decision."""
        ...

    def replay(self, record: R, offset: int) -> None:
        """Apply one durable record at `offset`, from a write of this broker or from the log."""
        ...

    async def load_record(self, header: BatchHeader, record: Record) -> None:
        """Load one record of the log that is no control record."""
        ...

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """Load the end of a transaction."""
        ...

    async def settle(self) -> None:
        """Replay the records that `load_record` noted."""
        ...
