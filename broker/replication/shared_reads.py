"""The last read of a partition, made once for all fetches at the same offset.

Hundreds of clients at one log's end fetch the same records within some milliseconds. Each would
look up the offset, read the file and describe the partition, with the same answer. So the second
fetch at an offset keeps the bytes and the `PartitionData`, and those after it get that object, as
long as nothing about the log has changed (`LogReader.moment`).

* A single consumer, which reads each place once, pays a comparison.
* Only small reads are kept, of which `MOST` at a time: 4 MB in all. Larger ones are slices of
  files, which the network sends without a copy.
* Nobody changes a `PartitionData` that was handed out. Clients for whom it is changed (Fetch v0-3)
  share nothing.

Event loop only. Used by `read_plan`; each `Partition` has one `LastRead`.
"""

from typing import Final

from protocol.messages.fetch import PartitionData
from storage.log.results import FileSlice

LARGEST: Final = 32 << 10
"""Bytes of one read that is kept."""
MOST: Final = 128
"""Reads that are kept, of all partitions."""


class LastRead:
    """The last read of one partition."""

    __slots__ = ("data", "key", "offset", "size")

    def __init__(self) -> None:
        self.offset = -1
        """The offset at which it began."""
        self.key: object = None
        """`data` depends on this key and on the offset."""
        self.data: PartitionData | None = None
        """The data for further fetches; None if it was read once, or must not be kept."""
        self.size = 0
        """Bytes of its records."""


class SharedReads:
    """The reads that are kept. One per broker."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[LastRead, None] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, last: LastRead, key: object, data: PartitionData) -> None:
        """Keep `data`, which was just read, with the bytes themselves; not if they are many."""
        last.data = None
        records = data.records
        if records is None or len(records) > LARGEST:
            return
        if isinstance(records, FileSlice):
            try:
                content = records.read() if records.is_cached() else b""
            except OSError:
                return  # the network meets it, as with any other slice
            if len(content) != len(records):
                return
            data.records = content
        kept = self._kept
        if last not in kept:
            if len(kept) >= MOST:
                oldest = next(iter(kept))
                del kept[oldest]
                oldest.data = None
            kept[last] = None
        last.key, last.data, last.size = key, data, len(records)
