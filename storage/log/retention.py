"""Which segments retention deletes: pure decisions over a log's segments, oldest first.

Three rules in this order (`rules`), each of which deletes a prefix of the log:

  * LOG_START_OFFSET: the next segment starts at or below the log start offset; whatever the policy
    (S-RET-4, KAFKA-7400).
  * RETENTION_SIZE: what remains is still at least `retention.bytes` (S-RET-3).
  * RETENTION_TIME: the newest record is older than `retention.ms` (S-RET-2). A record dated in the
    future keeps its segment and all after it.

A segment with offsets at or above the high watermark stays (S-RET-5), and so does an empty active
one. The active segment may be taken when it has records: the log rolls first.
"""

from collections.abc import Callable, Iterable, Iterator

from config.topic_config import TopicConfig
from storage.log.results import DeletionReason
from storage.log.segment import LogSegment

Expired = Callable[[LogSegment, LogSegment | None], bool]
"""(segment, the next one or None) -> whether a rule deletes it."""


def deletable(
    segments: Iterable[LogSegment], expired: Expired, *, high_watermark: int, log_end_offset: int
) -> list[LogSegment]:
    """The longest prefix of `segments` that the rule `expired` deletes and that may be deleted."""
    taken: list[LogSegment] = []
    remaining = list(segments)
    for at, segment in enumerate(remaining):
        following = remaining[at + 1] if at + 1 < len(remaining) else None
        upper = log_end_offset if following is None else following.base_offset
        empty_and_active = following is None and segment.size == 0
        if high_watermark < upper or empty_and_active or not expired(segment, following):
            break
        taken.append(segment)
    return taken


def rules(
    config: TopicConfig, log_start_offset: int, size: Callable[[], int], now_ms: int
) -> Iterator[tuple[Expired, DeletionReason]]:
    """The rules that hold, in their order, each with the reason that it gives.

    `size` returns the bytes of the segments that the rules before have left.
    """
    yield _below_start(log_start_offset), DeletionReason.LOG_START_OFFSET
    if not config.delete:
        return
    left = size()
    if 0 <= config.retention_bytes <= left:
        yield _beyond_size(config.retention_bytes, left), DeletionReason.RETENTION_SIZE
    if config.retention_ms >= 0:
        yield _older_than(config.retention_ms, now_ms), DeletionReason.RETENTION_TIME


def _older_than(retention_ms: int, now_ms: int) -> Expired:

    def expired(segment: LogSegment, _following: LogSegment | None) -> bool:
        return now_ms - segment.largest_timestamp() > retention_ms

    return expired


def _beyond_size(retention_bytes: int, log_size: int) -> Expired:
    """Ask once per segment, oldest first: each yes reduces the surplus."""
    surplus = log_size - retention_bytes

    def expired(segment: LogSegment, _following: LogSegment | None) -> bool:
        nonlocal surplus
        if surplus - segment.size < 0:
            return False
        surplus -= segment.size
        return True

    return expired


def _below_start(log_start_offset: int) -> Expired:
    def expired(_segment: LogSegment, following: LogSegment | None) -> bool:
        return following is not None and following.base_offset <= log_start_offset

    return expired
