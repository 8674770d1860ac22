"""The result of planning: ranges of offsets, and where their bytes were at that time."""

from dataclasses import dataclass

from protocol.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """The records of one segment, or of a part of it, for one worker to read. Pickles.

    The range of offsets defines the records. Segment and positions are where planning found them;
    the reader checks these, because retention and compaction may have changed the files.
    """

    directory: str
    """The partition's directory."""
    topic: str
    partition: int
    base_offset: int
    """The segment's base offset."""
    start_position: int
    """Position of a batch in the record file; bytes before it are below `start_offset`."""
    end_position: int
    """Bytes after it are beyond `end_offset`, or were not written yet."""
    start_offset: int
    end_offset: int
    """Exclusive."""
    start_timestamp: int | None = None
    """Records dated earlier are left out, ms."""
    end_timestamp: int | None = None
    """Records dated then or later are left out, ms."""
    aborted: tuple[tuple[int, int, int], ...] | None = None
    """(producer id, first offset, offset of the marker) of aborted transactions that touch the
    range; None if records of aborted transactions are read too."""
    newest: int | None = None
    """No record is dated later, ms; None if unknown or not requested."""
    oldest: int | None = None
    """No record is dated earlier, ms, if none is later than the request's `lateness_ms` allows;
    None if unknown or not requested."""
    is_lenient: bool = False
    """Whether records that retention has removed since are left out, instead of an error."""

    @property
    def bytes(self) -> int:
        """Bytes of the log that the task reads, approximately."""
        return max(self.end_position - self.start_position, 0)

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """The offsets of a partition, and the range that is read; ends are exclusive."""

    directory: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """The range that the tasks cover."""
    log_start_offset: int
    high_watermark: int
    is_high_watermark_known: bool
    """False if there is no checkpoint beside the partition, and the log end was used."""
    last_stable_offset: int | None
    """None in an uncommitted read."""
    log_end_offset: int
    segments: int
    """The number of all segments of the partition."""
    bytes: int
    """The size of all its record files."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The tasks, those of a partition in the order of offsets, and the ranges they cover."""

    tasks: tuple[ScanTask, ...]
    partitions: tuple[PartitionRange, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the log that all tasks read, approximately."""
        return sum(task.bytes for task in self.tasks)
