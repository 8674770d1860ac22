"""A committed offset, and what it is known by."""

from dataclasses import dataclass

NO_OFFSET = -1
"""What a partition without a committed offset is answered with."""
NO_LEADER_EPOCH = -1

OffsetKey = tuple[str, str, int]
"""(group id, topic, partition)"""


@dataclass(slots=True, kw_only=True)
class CommittedOffset:
    """One committed offset. Not frozen, for that costs two microseconds each; nobody changes one
    but replay, which notes where the record lies."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """Only where the client asked for its own retention."""
    topic_id: bytes | None = None
    """The topic the offset was committed for, where the record says."""
    record_offset: int = -1
    """Where the record lies in `__consumer_offsets`; -1 while that is not known."""
