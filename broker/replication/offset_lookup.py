"""ListOffsets for one partition: from a timestamp, or a special one, to an offset.

Special timestamps (S-TS-1): -1 latest, -2 earliest, -3 the record with the greatest timestamp, -4
earliest on local disk, -5 latest tiered, -6 earliest pending upload. Without tiered storage -4 is
the log start and the last two are unknown. Any other timestamp asks for the first record, by
offset, that is not older (S-TS-2, S-TS-3); the log searches it.

The answer is never an offset that the client may not see yet. Used by `broker.api.list_offsets`.
After `Partition.fetchOffsetForTimestamp`.
"""

from typing import Final

from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
)
from storage.epochs import UNDEFINED_EPOCH
from storage.log.looking import Look
from storage.log.results import FetchIsolation, TimestampOffset

EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6


async def look_up_offset(
    partition: Partition,
    timestamp: int,
    isolation: FetchIsolation,
    look: Look,
    current_leader_epoch: int = UNDEFINED_EPOCH,
    *,
    follower_answers: bool = False,
) -> TimestampOffset | None:
    """ListOffsets v1+; return None if no offset that `isolation` shows is an answer.

    `look` opens batches. With `follower_answers` a follower answers from its own log. Raises
    KafkaError: fenced or unknown leader epoch, a partition that is not served, StorageError;
    OFFSET_NOT_AVAILABLE while a new leader's high watermark is below the start of its epoch,
    because "latest" could then go back. And what `look` raises.
    """
    partition.check_leader_epoch(current_leader_epoch, follower_answers=follower_answers)
    log = partition.log
    if timestamp == LATEST_TIMESTAMP:
        _require_caught_up(partition, isolation)
        return TimestampOffset(
            timestamp=NO_TIMESTAMP,
            offset=log.offsets.visible_end(isolation),
            leader_epoch=partition.leader_epoch,
        )
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return _earliest(partition)
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return None
    if timestamp == MAX_TIMESTAMP:
        found = await log.times.search_latest(look)
    else:
        found = await log.times.search(timestamp, isolation, look)
    if found is None or found.offset >= log.offsets.visible_end(isolation):
        _require_caught_up(partition, isolation)
        return None
    return found


def _earliest(partition: Partition) -> TimestampOffset:
    log = partition.log
    start = log.log_start_offset
    epoch = log.leader_epochs.epoch_for_offset(start)
    if epoch is None:
        current = not partition.is_following and start >= partition.epoch_start_offset
        epoch = partition.leader_epoch if current else UNDEFINED_EPOCH
    return TimestampOffset(timestamp=NO_TIMESTAMP, offset=start, leader_epoch=epoch)


def _require_caught_up(partition: Partition, isolation: FetchIsolation) -> None:
    behind = partition.epoch_start_offset > partition.log.high_watermark
    if behind and isolation is not FetchIsolation.LOG_END:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"The high watermark of {partition.topic_partition} lags behind the start of leader "
            f"epoch {partition.leader_epoch} after an election.",
        )


def offsets_before(
    partition: Partition, timestamp: int, limit: int, *, follower_answers: bool = False
) -> list[int]:
    """ListOffsets v0 (S-TS-5): return at most `limit` segment starts, the newest first.

    For -1, and for a time that is not before now, the high watermark comes first; for -2 only the
    oldest; else the last segment written at or before `timestamp` and all before it. Raises
    KafkaError.
    """
    partition.check_leader_epoch(UNDEFINED_EPOCH, follower_answers=follower_answers)
    return partition.log.times.segments_before(timestamp, max(limit, 0))
