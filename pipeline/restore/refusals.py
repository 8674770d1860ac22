"""Which row a broker has refused, by which config of its topic, and what to do.

A broker refuses a batch. librdkafka then fails every row of it; where the broker names several
guilty rows it tells them from the others, where it names one it does not. So the row is searched
among those that failed, by the topic's limits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError

from pipeline.restore.job import TopicLimits

_OTHERS: Final = (
    KafkaError._INVALID_DIFFERENT_RECORD,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
)
"""Codes of rows that failed with another one."""
_TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
OVERHEAD: Final = 1000
"""More bytes than a batch of one row has beside key, value and headers."""


class FailedRow(NamedTuple):
    """A row that was not written."""

    position: int
    timestamp: int | None
    size: int
    """Bytes of key, value and headers."""
    has_key: bool
    error: Any
    """Its KafkaError."""


def guilty(failed: Sequence[FailedRow]) -> list[FailedRow]:
    """Return the rows that did not fail because of others."""
    return [row for row in failed if row.error.code() not in _OTHERS]


def refusal(
    failed: Sequence[FailedRow], cause: Any, topic: str, limits: TopicLimits, now_ms: int
) -> str:
    """Return words about the row to blame, of one or more; `cause` is the error of their batch."""
    if cause.code() == KafkaError.INVALID_TIMESTAMP:
        return _by_time(failed, topic, limits, now_ms)
    if cause.code() in _TOO_LARGE:
        row = max(failed, key=lambda one: one.size)
        return (
            f"position {row.position}: the row has {row.size:,} bytes, and {topic} takes"
            f" {limits.message_bytes:,} (max.message.bytes; compressed). "
            + _raise(topic, "max.message.bytes", row.size + OVERHEAD)
        )
    if cause.code() == KafkaError.INVALID_RECORD and limits.needs_keys:
        row = next((one for one in failed if not one.has_key), failed[0])
        if not row.has_key:
            return (
                f"position {row.position}: the row has no key, and {topic} is compacted"
                " (cleanup.policy). Restore to a topic that is not: --topic-prefix, with"
                " --topic-config cleanup.policy=delete"
            )
    return f"position {failed[0].position}: {failed[0].error.str()}"


def _by_time(failed: Sequence[FailedRow], topic: str, limits: TopicLimits, now_ms: int) -> str:
    """Blame the first row beyond a limit or, if the broker's clock is another, the farthest off."""

    def ahead(row: FailedRow) -> int:
        return (now_ms if row.timestamp is None else row.timestamp) - now_ms

    beyond = [row for row in failed if not -limits.before_ms <= ahead(row) <= limits.after_ms]
    row = beyond[0] if beyond else max(failed, key=lambda one: abs(ahead(one)))
    which, limit = ("after", limits.after_ms) if ahead(row) > 0 else ("before", limits.before_ms)
    config = f"message.timestamp.{which}.max.ms"
    return (
        f"position {row.position}: the row is dated {dated(row.timestamp)}, and {topic} takes"
        f" timestamps up to {limit:,} ms {which} the broker's time ({config}). "
        + _raise(topic, config, 2**63 - 1)
    )


def _raise(topic: str, config: str, value: int) -> str:
    return (
        f"Raise it (pykafkalog configs --topic {topic} --add {config}={value}), and run the same"
        " restore again: it goes on"
    )


def dated(timestamp_ms: int | None) -> str:
    """Return a time in UTC and its milliseconds, or these alone where Python has no such year."""
    if timestamp_ms is None:
        return "now"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC ({timestamp_ms} ms)"
