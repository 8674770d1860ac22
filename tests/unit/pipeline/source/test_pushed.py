"""Conditions of a query as bounds of what is read: at their edges, and those that bound nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.source.pushed import Pushed
from protocol.types import TopicPartition
from storage.reader.scan import PartitionRange


@dataclass(frozen=True)
class Condition:
    """Stands for Spark's `Filter` classes, which versions before 4.1 do not have."""

    attribute: tuple[str, ...]
    value: Any = None


def condition(kind: str, column: str, value: Any) -> Any:
    return type(kind, (Condition,), {})((column,), value)


def pushed(*conditions: tuple[str, str, Any]) -> Pushed:
    found = Pushed()
    found.add([condition(*one) for one in conditions])
    return found


def there(topic: str, partition: int, start: int, end: int) -> PartitionRange:
    return PartitionRange(
        directory="",
        topic=topic,
        partition=partition,
        start_offset=start,
        end_offset=end,
        log_start_offset=start,
        high_watermark=end,
        is_high_watermark_known=True,
        last_stable_offset=None,
        log_end_offset=end,
        segments=1,
        bytes=1,
    )


PARTITIONS = [there("a", 0, 0, 10), there("a", 1, 5, 10), there("b", 0, 0, 10)]


def left(*conditions: tuple[str, str, Any]) -> dict[str, tuple[int, int]]:
    return {str(where): found for where, found in pushed(*conditions).of(PARTITIONS).items()}


ALL = {"a-0": (0, 10), "a-1": (5, 10), "b-0": (0, 10)}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([("EqualTo", "offset", 7)], {"a-0": (7, 8), "a-1": (7, 8), "b-0": (7, 8)}),
        ([("GreaterThan", "offset", 7)], {"a-0": (8, 10), "a-1": (8, 10), "b-0": (8, 10)}),
        ([("GreaterThanOrEqual", "offset", 9)], {"a-0": (9, 10), "a-1": (9, 10), "b-0": (9, 10)}),
        ([("GreaterThanOrEqual", "offset", 10)], {}),
        ([("GreaterThan", "offset", 9)], {}),
        ([("LessThan", "offset", 5)], {"a-0": (0, 5), "b-0": (0, 5)}),
        ([("LessThanOrEqual", "offset", 5)], {"a-0": (0, 6), "a-1": (5, 6), "b-0": (0, 6)}),
        ([("In", "offset", (9, 2))], {"a-0": (2, 10), "a-1": (5, 10), "b-0": (2, 10)}),
        ([("GreaterThan", "offset", 2), ("LessThan", "offset", 4)], {"a-0": (3, 4), "b-0": (3, 4)}),
        ([("EqualTo", "partition", 1)], {"a-1": (5, 10)}),
        ([("In", "partition", (1, 2)), ("LessThan", "partition", 1)], {}),
        ([("LessThan", "partition", 1), ("EqualTo", "topic", "b")], {"b-0": (0, 10)}),
        ([("In", "topic", ("a", "c"))], {"a-0": (0, 10), "a-1": (5, 10)}),
        ([("EqualNullSafe", "topic", "c")], {}),
        # These say nothing of what has to be read.
        ([("In", "offset", (3, None))], ALL),
        ([("EqualTo", "offset", 3.5)], ALL),
        ([("EqualTo", "value", b"x")], ALL),
        ([("Not", "offset", 3)], ALL),
        ([("StringStartsWith", "topic", "a")], ALL),
        ([("GreaterThan", "timestamp", datetime(2026, 1, 1))], ALL),  # of no zone
    ],
)
def test_conditions_on_topic_partition_and_offset(
    conditions: list[tuple[str, str, Any]], expected: dict[str, tuple[int, int]]
) -> None:
    assert left(*conditions) == expected
    assert bool(pushed(*conditions)) == (expected != ALL)


def test_conditions_on_the_timestamp_are_milliseconds() -> None:
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    between = second + timedelta(microseconds=1)
    assert pushed(("GreaterThanOrEqual", "timestamp", second)).times == (1000, None)
    assert pushed(("GreaterThan", "timestamp", second)).times == (1001, None)
    assert pushed(("LessThan", "timestamp", second)).times == (None, 1000)
    assert pushed(("LessThanOrEqual", "timestamp", second)).times == (None, 1001)
    assert pushed(("EqualTo", "timestamp", second)).times == (1000, 1001)
    assert pushed(("GreaterThanOrEqual", "timestamp", between)).times == (1001, None)
    assert pushed(("GreaterThan", "timestamp", between)).times == (1001, None)
    assert pushed(("LessThan", "timestamp", between)).times == (None, 1001)
    assert pushed(("LessThanOrEqual", "timestamp", between)).times == (None, 1001)
    before = datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)
    assert pushed(("GreaterThan", "timestamp", before)).times == (0, None)


@pytest.mark.parametrize(
    ("kind", "value", "times"),
    [
        ("EqualTo", 5, (5, 6)),
        ("EqualTo", 2**63 - 1, (2**63 - 1, None)),
        ("LessThanOrEqual", 2**63 - 1, (None, None)),
        ("LessThan", 2**63 - 1, (None, 2**63 - 1)),
        ("GreaterThan", 2**63 - 2, (2**63 - 1, None)),
        ("GreaterThan", 2**63 - 1, (2**63 - 1, 2**63 - 1)),
        ("LessThan", -(2**63), (None, -(2**63))),
        ("GreaterThanOrEqual", -(2**63), (-(2**63), None)),
    ],
)
def test_conditions_on_the_milliseconds_of_a_timestamp_keep_to_64_bits(
    kind: str, value: int, times: tuple[int | None, int | None]
) -> None:
    assert pushed((kind, "timestampMs", value)).times == times


def test_a_column_within_another_is_not_ours() -> None:
    found = Pushed()
    found.add([type("EqualTo", (Condition,), {})(("headers", "offset"), 3), object()])
    assert not found
    assert set(found.of(PARTITIONS)) >= {TopicPartition("a", 0)}
