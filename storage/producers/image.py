"""All producers of a partition at one moment, to be written into a snapshot file.

Half a million producers take 23 MB. Taking the image costs microseconds, because it shares its rows
with the table, which copies a block before it changes it. Encoding it takes a tenth of a second, so
a large image is encoded in a thread.
"""

from collections.abc import Sequence
from typing import Any, Final

from storage.producers.snapshot import (
    ENTRY_SIZE,
    HEADER_SIZE,
    PRODUCER_ID,
    java_map_capacity,
    java_map_order,
    sealed,
)

LARGE: Final = 4096
"""The most rows of an image that is not large: encoding these takes two milliseconds."""


class ProducerImage:
    """Rows in the order in which producers were added. Immutable, so any thread may use it."""

    __slots__ = ("_largest_size", "count", "pieces")

    def __init__(self, pieces: Sequence[bytes | bytearray], largest_size: int) -> None:
        """`pieces`: blocks of rows. `largest_size`: the most producers ever known at a time."""
        self.pieces = tuple(pieces)
        self._largest_size = largest_size
        self.count = sum(map(len, self.pieces)) // ENTRY_SIZE
        """How many producers."""

    @property
    def is_large(self) -> bool:
        """Whether `encode` takes too long for the event loop."""
        return self.count > LARGE

    def encode(self) -> bytearray:
        """The bytes of the snapshot file."""
        rows = b"".join(self.pieces)
        return self._encode_bulk(rows) if self.is_large else self._encode_few(rows)

    def _encode_few(self, rows: bytes) -> bytearray:
        by_id = {
            producer_id: rows[at * ENTRY_SIZE : (at + 1) * ENTRY_SIZE]
            for at, (producer_id,) in enumerate(PRODUCER_ID.iter_unpack(rows))
        }
        file = bytearray(HEADER_SIZE)
        file += b"".join(by_id[one] for one in java_map_order(by_id, self._largest_size))
        return sealed(file)

    def _encode_bulk(self, rows: bytes) -> bytearray:
        """`encode` with numpy, which releases the interpreter lock meanwhile.

        Imported here: a broker with few producers per partition does not need it.
        """
        import numpy

        row: Any = numpy.dtype(
            {"names": ["id"], "formats": [">i8"], "offsets": [0], "itemsize": ENTRY_SIZE}
        )
        ids = numpy.frombuffer(rows, dtype=row)["id"].astype(numpy.int64)
        folded = (ids ^ (ids >> 32)) & 0xFFFFFFFF
        bucket = (folded ^ (folded >> 16)) & (java_map_capacity(self._largest_size) - 1)
        order = numpy.argsort(bucket, kind="stable")
        file = bytearray(HEADER_SIZE + len(rows))
        whole = f"V{ENTRY_SIZE}"
        numpy.take(
            numpy.frombuffer(rows, dtype=whole),
            order,
            out=numpy.frombuffer(file, dtype=whole, offset=HEADER_SIZE),
            mode="clip",  # the other mode writes to a copy first
        )
        return sealed(file)
