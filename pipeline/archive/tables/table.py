"""The interface of an archive to a table of any format."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

PARTITIONED_BY: Final = ("topic", "date")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that a batch added to a table."""

    topic: str
    partition: int
    date: str
    records: int
    first_offset: int
    last_offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of a compaction."""

    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0


class LakeTable(Protocol):
    """A table with the columns of an archive, partitioned by topic and date."""

    @property
    def latest_ms(self) -> int:
        """The latest timestamp that it takes, in milliseconds."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no table yet, or nothing was ever written to it."""

    def allows(self, name: str) -> bool:
        """Return whether a field within the values may have this name."""

    def append(self, frame: Any, writer: str, batch: int) -> list[WrittenFile]:
        """Append a writer's batch unless the table has it already; return the batch's new files.

        Calls with the same (writer, batch) have the same offsets; a writer's batches come in order.
        """

    def compact(self, target_bytes: int, committed: int | None, writer: str | None) -> Compaction:
        """Replace small files by files of about `target_bytes`; readers see no row twice.

        `committed` is the last batch of `writer` that will not be repeated.
        """
