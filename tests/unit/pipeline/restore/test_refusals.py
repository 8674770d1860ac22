"""Which row is to blame, by which config, and what to do."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from pipeline.restore.job import TopicLimits
from pipeline.restore.refusals import FailedRow, dated, guilty, refusal

NOW = 1_800_000_000_000
LIMITS = TopicLimits(message_bytes=1000, before_ms=50, after_ms=10, needs_keys=True)
DIFFERENT = KafkaError._INVALID_DIFFERENT_RECORD


def row(position: int, ahead: int | None = 0, **more: Any) -> FailedRow:
    """A row dated `ahead` ms after now; None: not at all."""
    error = KafkaError(more.pop("code", KafkaError.INVALID_TIMESTAMP), "as told")
    values = {"size": 9, "has_key": True, **more}
    return FailedRow(position, None if ahead is None else NOW + ahead, error=error, **values)


def said(*rows: FailedRow, code: int = KafkaError.INVALID_TIMESTAMP) -> str:
    return refusal(rows, KafkaError(code, "of the batch"), "orders", LIMITS, NOW)


def test_rows_that_failed_with_others_are_not_guilty() -> None:
    codes = (DIFFERENT, KafkaError.INVALID_RECORD, KafkaError._PURGE_QUEUE, DIFFERENT)
    rows = [row(number, code=code) for number, code in enumerate(codes)]
    assert [one.position for one in guilty(rows)] == [1]
    assert guilty([row(1, code=KafkaError._PURGE_INFLIGHT)]) == []


@pytest.mark.parametrize(
    ("ahead", "which"), [((0, 10, 11, 12), "after"), ((0, -50, -51, -52), "before")]
)
def test_the_first_row_beyond_a_limit_of_time_is_named(ahead: tuple[int, ...], which: str) -> None:
    words = said(*[row(number, one) for number, one in enumerate(ahead, 4)])
    assert words.startswith(f"position 6: the row is dated {dated(NOW + ahead[2])}, and orders")
    assert f"message.timestamp.{which}.max.ms" in words
    assert f"--add message.timestamp.{which}.max.ms=9223372036854775807)" in words
    assert words.endswith("run the same restore again: it goes on")


def test_with_another_clock_of_the_broker_the_row_that_is_farthest_off_is_named() -> None:
    assert said(row(1, None), row(2, 9), row(3, 10)).startswith("position 3:")
    assert said(row(1, 9), row(2, -49), row(3, 0)).startswith("position 2:")


def test_a_row_that_is_too_large_is_named_with_both_sizes() -> None:
    words = said(row(1), row(2, size=5000), row(3), code=KafkaError.MSG_SIZE_TOO_LARGE)
    assert words.startswith("position 2: the row has 5,000 bytes, and orders takes 1,000 (max.me")
    assert "--add max.message.bytes=6000)" in words


def test_a_row_without_key_in_a_compacted_topic_is_named() -> None:
    rows = (row(1), row(2, has_key=False), row(3, has_key=False))
    assert said(*rows, code=KafkaError.INVALID_RECORD).startswith("position 2: the row has no key")
    assert said(row(1), code=KafkaError.INVALID_RECORD) == "position 1: as told"


def test_what_is_not_known_is_told_as_the_broker_tells_it() -> None:
    words = said(row(7), row(8), code=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert words == "position 7: as told"


def test_times_in_words() -> None:
    assert dated(0) == "1970-01-01 00:00:00 UTC (0 ms)"
    assert dated(253_402_300_799_999) == "9999-12-31 23:59:59 UTC (253402300799999 ms)"
    assert dated(253_402_300_800_000) == "253402300800000 ms"
    assert dated(-62_135_596_800_001) == "-62135596800001 ms"
    assert dated(None) == "now"


def test_limits_are_a_topics_configs() -> None:
    configs = {
        "max.message.bytes": "500000",
        "message.timestamp.before.max.ms": "7",
        "message.timestamp.after.max.ms": "8",
        "cleanup.policy": "delete,compact",
    }
    assert TopicLimits.of(configs) == TopicLimits(500_000, 7, 8, True)
    assert TopicLimits.of({"cleanup.policy": "delete"}).needs_keys is False


@pytest.mark.parametrize(
    ("most", "batch"), [(0, 1), (1, 1), (999_999, 999_999), (1_000_001, 1_000_000)]
)
def test_a_batch_is_not_larger_than_what_the_topic_takes(most: int, batch: int) -> None:
    assert TopicLimits.of({"max.message.bytes": str(most)}).batch_bytes == batch
