"""The part of the log that a query needs, by its conditions.

    where partition = 3 and offset >= 1000 and timestamp < timestamp '2026-01-01'

Spark hands over conditions that are joined by AND. Those of topic, partition, offset and timestamp
become bounds; all others are passed over, and Spark evaluates every one of them itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from protocol.types import TopicPartition
from storage.reader.scan import PartitionRange
from storage.reader.scan.seek import MOST

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS: Final = ("partition", "offset", "timestamp")


@dataclass(slots=True)
class Interval:
    """Numbers from `low` on and below `high`, as far as these are known."""

    low: int | None = None
    high: int | None = None

    def narrow(self, low: int | None, high: int | None) -> None:
        """Keep what is in the other interval too."""
        if low is not None:
            self.low = low if self.low is None else max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)

    def cut(self, low: int, high: int) -> tuple[int, int]:
        """Return what is left of [low, high)."""
        return (
            low if self.low is None else max(low, self.low),
            high if self.high is None else min(high, self.high),
        )


@dataclass(slots=True)
class Pushed:
    """The bounds of one query."""

    numbers: dict[str, Interval] = field(default_factory=lambda: {n: Interval() for n in _NUMBERS})
    values: dict[str, set[Any]] = field(default_factory=dict)
    """The values that a column may have, by column."""

    def __bool__(self) -> bool:
        return bool(self.values) or any(one != Interval() for one in self.numbers.values())

    @property
    def times(self) -> tuple[int | None, int | None]:
        """Records are dated from the first on and before the second, ms of 64 bits."""
        low, high = self.numbers["timestamp"].low, self.numbers["timestamp"].high
        if low is not None and low > MOST:
            return MOST, MOST  # none is
        return low, None if high is not None and high > MOST else high

    def add(self, conditions: Iterable[Any]) -> None:
        """Add Spark's `Filter` objects (`pyspark.sql.datasource`, from 4.1 on)."""
        for one in conditions:
            column: tuple[str, ...] = getattr(one, "attribute", ())
            if len(column) == 1:
                name = "timestamp" if column[0] == "timestampMs" else column[0]
                self._add(type(one).__name__, name, getattr(one, "value", None))

    def _add(self, kind: str, column: str, value: Any) -> None:
        one_of = {"In": value, "EqualTo": (value,), "EqualNullSafe": (value,)}.get(kind)
        if column == "topic" and one_of is not None:
            self._allow(column, one_of)
        elif column in _NUMBERS and one_of is not None:
            near = [_near(one) for one in one_of]
            known = [one for one in near if one is not None]
            if len(known) < len(near):
                return
            if column == "partition":
                self._allow(column, one_of)
            low, high = min(ceil for _, ceil in known), max(floor for floor, _ in known) + 1
            self.numbers[column].narrow(low, high)
        elif column in _NUMBERS and (found := _near(value)) is not None:
            floor, ceil = found
            bounds = {
                "GreaterThan": (floor + 1, None),
                "GreaterThanOrEqual": (ceil, None),
                "LessThan": (None, ceil),
                "LessThanOrEqual": (None, floor + 1),
            }.get(kind, (None, None))
            self.numbers[column].narrow(*bounds)

    def _allow(self, column: str, values: Iterable[Any]) -> None:
        self.values[column] = self.values.get(column, set(values)) & set(values)

    def of(self, found: Sequence[PartitionRange]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the offsets that are needed, of the partitions that are."""
        needed = {}
        for one in found:
            number = one.partition
            first, last = self.numbers["partition"].cut(number, number + 1)
            low, high = self.numbers["offset"].cut(one.start_offset, one.end_offset)
            if (
                first < last
                and low < high
                and number in self.values.get("partition", {number})
                and one.topic in self.values.get("topic", {one.topic})
            ):
                needed[one.topic_partition] = low, high
        return needed


def _near(value: Any) -> tuple[int, int] | None:
    """Return the numbers at or below a value and at or above it: of a time, its milliseconds."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, datetime) and value.tzinfo is not None:
        micros = (value - _EPOCH) // timedelta(microseconds=1)
        return micros // 1000, -(-micros // 1000)
    return None
