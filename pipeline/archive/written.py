"""Counts what an archive wrote, by topic and partition."""

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
    """The counts of a run; `add` counts files, its user counts batches and dead letters."""

    batches: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    dead_letters: int = 0
    _partitions: dict[tuple[str, int], PartitionWritten] = field(default_factory=dict)

    def add(self, files: Iterable[WrittenFile]) -> None:
        """Count the files of a batch."""
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
        """Return each partition with records written, in order."""
        return [self._partitions[place] for place in sorted(self._partitions)]

    def as_json(self) -> dict[str, Any]:
        """Return all counts."""
        return {
            "batches": self.batches,
            "records": self.records,
            "files": self.files,
            "bytes": self.bytes,
            "dead_letters": self.dead_letters,
            "partitions": [asdict(partition) for partition in self.partitions()],
        }
