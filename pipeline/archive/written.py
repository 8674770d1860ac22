"""What an archive wrote, added up by topic and partition."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.archive.tables.table import WrittenFile


@dataclass(frozen=True, slots=True)
class PartitionWritten:
    """The files of one partition."""

    topic: str
    partition: int
    records: int
    first_offset: int
    last_offset: int
    files: int
    bytes: int


@dataclass(slots=True)
class Written:
    """Counts files as they come; batches and dead letters beside them."""

    batches: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    dead_letters: int = 0
    _partitions: dict[tuple[str, int], PartitionWritten] = field(default_factory=dict)

    def add(self, files: Iterable[WrittenFile]) -> None:
        """Files that a batch brought."""
        for file in files:
            self.records += file.records
            self.files += 1
            self.bytes += file.bytes
            place = (file.topic, file.partition)
            old = self._partitions.get(place) or PartitionWritten(
                *place, 0, file.first_offset, file.last_offset, 0, 0
            )
            self._partitions[place] = PartitionWritten(
                *place,
                old.records + file.records,
                min(old.first_offset, file.first_offset),
                max(old.last_offset, file.last_offset),
                old.files + 1,
                old.bytes + file.bytes,
            )

    def partitions(self) -> list[PartitionWritten]:
        """Each partition of which something was written, in order."""
        return [self._partitions[place] for place in sorted(self._partitions)]

    def as_json(self) -> dict[str, Any]:
        """The whole of it."""
        return {
            "batches": self.batches,
            "records": self.records,
            "files": self.files,
            "bytes": self.bytes,
            "dead_letters": self.dead_letters,
            "partitions": [asdict(partition) for partition in self.partitions()],
        }
