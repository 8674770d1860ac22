"""What can be wrong with a scan, each naming topic, partition and offset."""

from collections.abc import Sequence

from protocol.types import TopicPartition


class ScanError(Exception):
    """Base of the errors of planning and reading. They pickle: tasks may run elsewhere."""

    def __reduce__(self) -> tuple[object, ...]:
        # By default an exception is made anew from `args`, which here is one sentence.
        return _remade, (type(self), str(self), self.__dict__)


def _remade(kind: type[ScanError], message: str, state: dict[str, object]) -> ScanError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class UnknownTopic(ScanError):
    """A topic or partition that was asked for is in no directory."""

    def __init__(self, name: str, directories: Sequence[str], known: Sequence[str]) -> None:
        there = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        super().__init__(
            f"{name} is not in {', '.join(directories)}; "
            + (f"there are {there}" if known else "there are no topics")
        )
        self.name = name


class NoLogDirectory(ScanError):
    """A directory that was named cannot be read, or is none of Kafka's."""

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


class CorruptLog(ScanError):
    """Bytes of a record file are not what a log holds."""

    def __init__(
        self, where: TopicPartition, offset: int, path: str, position: int, why: str
    ) -> None:
        super().__init__(f"{where}, offset {offset}: {why} ({path}, byte {position})")
        self.topic_partition = where
        self.offset = offset
        """Of the batch; where that is not known, the first offset that could not be read."""
        self.path = path
        self.position = position
