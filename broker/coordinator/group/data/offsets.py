"""A committed offset and its key."""

from dataclasses import dataclass

from protocol.types import NO_LEADER_EPOCH

NO_OFFSET = -1
"""The offset in the answer for a partition without a committed one."""

OffsetKey = tuple[str, str, int]
"""(group id, topic, partition)"""


@dataclass(slots=True, kw_only=True)
class CommittedOffset:
    """One committed offset. Not frozen, because freezing costs two microseconds each; only replay
    changes one, to set `record_offset`."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """Set only if the client asked for its own retention (OffsetCommit v2-4)."""
    topic_id: bytes | None = None
    """The id of the topic; None if the record has none."""
    record_offset: int = -1
    """Offset of the record in its partition of `__consumer_offsets`; -1 until it is replayed."""
