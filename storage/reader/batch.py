"""One batch of a record file, as the reader returns it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.records.batch import BatchHeader, verify_crc
from protocol.records.record import Record, iter_records

_BULK: Final = 100
"""Records from which numpy is quicker than Python."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a record file. It keeps the chunk alive that holds its bytes."""

    position: int
    """Position of its first byte in the record file."""
    header: BatchHeader
    chunk: memoryview
    at: int
    """Position of its first byte in `chunk`."""

    @property
    def data(self) -> memoryview:
        """The batch, whole."""
        return self.chunk[self.at : self.at + self.header.size]

    @property
    def valid(self) -> bool:
        """Whether the checksum is right."""
        return verify_crc(self.chunk, self.at, self.header)

    def check_records(self) -> None:
        """Decode its records, in bulk if they may be many or have many headers.

        Raises as `records` does.
        """
        header = self.header
        if header.magic >= 2 and (header.is_compressed or header.record_count >= _BULK):
            from storage.reader.columns import check_records

            check_records(self.chunk, self.at)
        else:
            for _ in self.records():
                pass

    def records(self) -> Iterator[Record]:
        """Its records, decompressed. Raises the records errors for a batch that cannot be read."""
        return iter_records(self.chunk, self.at)
