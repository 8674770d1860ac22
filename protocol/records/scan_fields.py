"""The interface of both readers of record fields; `scan` chooses one by batch size."""

from typing import Protocol


class RecordFields(Protocol):
    """The columns of a batch (timestamps, offset deltas, key lengths), structure checked."""

    def time_range(self) -> tuple[int, int]:
        """Least and greatest record timestamp, ms; (-1, -1) without records."""
        ...

    def keyless(self) -> tuple[int, ...]:
        """Indexes of records without key."""
        ...

    def outside(self, least: int, greatest: int) -> tuple[int, ...]:
        """Indexes of records with a timestamp outside [least, greatest], except -1."""
        ...

    def first_out_of_sequence(self, first: int = 0) -> int | None:
        """First index whose offset delta is not `first` + index; None when there is none."""
        ...

    def first_from(self, timestamp: int, offset_delta: int) -> tuple[int, int] | None:
        """(offset delta, timestamp) of the first record with both at least as given."""
        ...
