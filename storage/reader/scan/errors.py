"""The errors of planning and reading a scan."""

from collections.abc import Sequence

from protocol.types import TopicPartition


class ScanError(Exception):
    """Base of the errors of planning and reading. They pickle: tasks may run elsewhere."""

    def __reduce__(self) -> tuple[object, ...]:
        # By default unpickling calls the class with `args`, which here is only the message.
        return _remade, (type(self), str(self), self.__dict__)


def _remade(kind: type[ScanError], message: str, state: dict[str, object]) -> ScanError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class UnknownTopic(ScanError):
    """A requested topic or partition is in no directory."""

    def __init__(self, name: str, directories: Sequence[str], known: Sequence[str]) -> None:
        there = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        super().__init__(
            f"{name} is not in {', '.join(directories)}; "
            + (f"there are {there}" if known else "there are no topics")
        )
        self.name = name


class NoLogDirectory(ScanError):
    """A named directory cannot be read, is not a log directory, or repeats a partition."""

    def __init__(self, directory: str, why: str) -> None:
        super().__init__(f"{directory}: {why}")
        self.directory = directory


class RecordsGone(ScanError):
    """Records of the range were removed: by retention, by DeleteRecords, or with their topic."""

    def __init__(self, where: TopicPartition, offset: int, first: int | None) -> None:
        left = "nothing is left" if first is None else f"the log starts at offset {first} now"
        super().__init__(
            f"{where}: records from offset {offset} on were removed before they were read; {left}"
        )
        self.topic_partition = where
        self.offset = offset
        self.first_offset = first


class TimestampOutOfRange(ScanError):
    """A record is dated so that a column of microseconds cannot hold its time."""

    def __init__(self, where: TopicPartition, offset: int, timestamp_ms: int) -> None:
        super().__init__(
            f"{where}, offset {offset}: its timestamp, {timestamp_ms} ms, is of a year that the "
            "column timestamp cannot hold; read the column timestampMs instead, which has it "
            "exactly (does a producer count other units than milliseconds?)"
        )
        self.topic_partition = where
        self.offset = offset
        self.timestamp_ms = timestamp_ms


class CorruptLog(ScanError):
    """Bytes of a record file are not valid batches."""

    def __init__(
        self, where: TopicPartition, offset: int, path: str, position: int, why: str
    ) -> None:
        super().__init__(f"{where}, offset {offset}: {why} ({path}, byte {position})")
        self.topic_partition = where
        self.offset = offset
        """Offset of the batch; if unknown, the first offset that could not be read."""
        self.path = path
        self.position = position
