"""The answer of planning: ranges of offsets, and where their bytes were when it was asked."""

from dataclasses import dataclass

from protocol.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Records of one segment, or of a part of it: what one worker reads. It pickles.

    The range of offsets is what it means. Segment and positions are where those offsets were
    found, and whoever reads checks them: retention and compaction may have changed the files.
    """

    directory: str
    """Of the partition."""
    topic: str
    partition: int
    base_offset: int
    """Of the segment."""
    start_position: int
    """Of a batch in the segment's record file; what is before it is below `start_offset`."""
    end_position: int
    """Bytes behind it are beyond `end_offset`, or were not written yet."""
    start_offset: int
    end_offset: int
    """Exclusive."""
    start_timestamp: int | None = None
    """Records dated earlier are left out, ms."""
    end_timestamp: int | None = None
    """Records dated then or later are left out, ms."""
    aborted: tuple[tuple[int, int, int], ...] | None = None
    """(producer id, first offset, offset of the marker) of aborted transactions that touch the
    range; None when records of aborted transactions are to be read as well."""
    newest: int | None = None
    """No record of it is dated later, ms; None: not known, or not asked for."""
    oldest: int | None = None
    """No record of it is dated earlier, ms, if none is late by more than the request allows; None:
    not known, or not asked for."""
    is_lenient: bool = False
    """Records that retention has taken since are left out, instead of being an error."""

    @property
    def bytes(self) -> int:
        """Of log that reading it takes, about."""
        return max(self.end_position - self.start_position, 0)

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """What there is of a partition, and what is read of it; offsets, ends are exclusive."""

    directory: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """The range that the tasks cover."""
    log_start_offset: int
    high_watermark: int
    is_high_watermark_known: bool
    """False: no checkpoint beside the partition names one, and the log end was taken."""
    last_stable_offset: int | None
    """None: nobody asked (an uncommitted read)."""
    log_end_offset: int
    segments: int
    """That the partition has."""
    bytes: int
    """Of all its record files."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """Tasks of a partition follow each other in the order of offsets."""

    tasks: tuple[ScanTask, ...]
    partitions: tuple[PartitionRange, ...]

    @property
    def bytes(self) -> int:
        """Of log that reading all tasks takes, about."""
        return sum(task.bytes for task in self.tasks)
