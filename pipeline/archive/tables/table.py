"""What an archive needs of a table, whatever its format."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

PARTITIONED_BY: Final = ("topic", "date")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that a batch put into a table."""

    topic: str
    partition: int
    date: str
    records: int
    first_offset: int
    last_offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0


class LakeTable(Protocol):
    """A table with the columns of an archive, partitioned by topic and date."""

    @property
    def is_empty(self) -> bool:
        """There is no table yet, or nothing was ever written to it."""

    def append(self, frame: Any, writer: str, batch: int) -> list[WrittenFile]:
        """Have the rows of a writer's batch in the table, once, however often this is called.

        Calls with one (writer, batch) bring the same offsets; batches of a writer come in order.
        """

    def compact(self, target_bytes: int, committed: int | None, writer: str | None) -> Compaction:
        """Replace small files by files of about `target_bytes`; readers see no row twice.

        `committed`: the last batch of `writer` that will never be appended again.
        """
