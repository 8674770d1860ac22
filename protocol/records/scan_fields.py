"""What both readers of record fields answer; `scan` chooses between them by batch size."""

from typing import NamedTuple, Protocol


class TimestampScan(NamedTuple):
    """Least and greatest record timestamp, and the offset of the first record with the greatest."""

    minimum: int
    maximum: int
    offset_of_maximum: int


NO_RECORDS = TimestampScan(-1, -1, -1)


class Fields(Protocol):
    """The columns of a batch (timestamps, offset deltas, key lengths), structure checked."""

    def timestamp_summary(self, base_offset: int) -> TimestampScan:
        """Least, greatest, and `base_offset` + index of the first greatest."""
        ...

    def keyless(self) -> tuple[int, ...]:
        """Indexes of records without key."""
        ...

    def outside(self, least: int, greatest: int) -> tuple[int, ...]:
        """Indexes of records dated outside [least, greatest], those dated -1 excepted."""
        ...

    def first_out_of_sequence(self, first: int = 0) -> int | None:
        """First index whose offset delta is not `first` and the index."""
        ...

    def first_from(self, timestamp: int, offset_delta: int) -> tuple[int, int] | None:
        """(offset delta, timestamp) of the first record with both at least as given."""
        ...
