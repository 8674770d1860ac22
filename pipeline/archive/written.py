"""Counts what an archive wrote, by topic and partition, and what it could not write."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.archive.tables.table import WrittenFile


@dataclass(frozen=True, slots=True)
class News:
    """The fields of a batch that the schema before it did not have."""

    columns: tuple[str, ...] = ()
    """New columns; those of JSON with their types."""
    dropped: int = 0
    """Records whose value lost fields."""
    names: tuple[str, ...] = ()
    """Some of the fields that they lost."""


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
    """The counts of a run; `add` and `note` count, and their user batches and dead letters."""

    batches: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    dead_letters: int = 0
    dropped_fields: int = 0
    """Records whose value lost fields (`--new-fields drop`)."""
    new_columns: list[str] = field(default_factory=list)
    dropped_names: set[str] = field(default_factory=set)
    """Some of the fields that were dropped."""
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

    def note(self, news: News) -> None:
        """Count the news of a batch."""
        self.new_columns += news.columns
        self.dropped_fields += news.dropped
        self.dropped_names |= set(news.names)

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
            "new_columns": self.new_columns,
            "dropped_fields": {
                "records": self.dropped_fields,
                "names": sorted(self.dropped_names),
            },
            "partitions": [asdict(partition) for partition in self.partitions()],
        }
