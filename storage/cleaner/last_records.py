"""Where each producer of a log stands: what keeps the header of its last batch (S-CMP-7).

A partition may know half a million producers. So on the event loop they are taken as the packed
rows of a producer snapshot, which costs microseconds; only who asks, in a child, makes columns of
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from storage.producers.image import ProducerImage
from storage.producers.snapshot import ENTRY_SIZE

Ints = npt.NDArray[np.int64]

_ROW: Final = np.dtype(
    {
        "names": ["id", "epoch", "last_offset"],
        "formats": [">i8", ">i2", ">i8"],
        "offsets": [0, 8, 14],
        "itemsize": ENTRY_SIZE,
    }
)


class LastRecords(Mapping[int, tuple[int, int]]):
    """Producer id -> (epoch, offset of its last data in the log, or -1 where there is none)."""

    __slots__ = ("_columns", "_pieces")

    def __init__(self, pieces: Sequence[bytes | bytearray] = ()) -> None:
        """`pieces`: rows of a snapshot, which nobody changes any more."""
        self._pieces = tuple(pieces)
        self._columns: tuple[Ints, Ints, Ints] | None = None

    @classmethod
    def of(cls, image: ProducerImage) -> "LastRecords":
        """Those of a partition at one moment."""
        return cls(image.pieces)

    @property
    def columns(self) -> tuple[Ints, Ints, Ints]:
        """Ids in ascending order, epochs, last offsets."""
        if self._columns is None:
            rows = np.frombuffer(b"".join(self._pieces), _ROW)
            rows = rows[np.argsort(rows["id"], kind="stable")]
            self._columns = (
                rows["id"].astype(np.int64),
                rows["epoch"].astype(np.int64),
                rows["last_offset"].astype(np.int64),
            )
        return self._columns

    def rows_of(self, producer_ids: Ints) -> Ints:
        """The row of each in `columns`, -1 for one that is not there."""
        ids = self.columns[0]
        if not len(ids):
            return np.full(len(producer_ids), -1, np.int64)
        rows = np.minimum(np.searchsorted(ids, producer_ids), len(ids) - 1)
        found: Ints = np.where(ids[rows] == producer_ids, rows, -1)
        return found

    def __getitem__(self, producer_id: int) -> tuple[int, int]:
        (row,) = self.rows_of(np.array([producer_id], np.int64)).tolist()
        if row < 0:
            raise KeyError(producer_id)
        _, epochs, last = self.columns
        return int(epochs[row]), int(last[row])

    def __iter__(self) -> Iterator[int]:
        return iter(self.columns[0].tolist())

    def __len__(self) -> int:
        return sum(map(len, self._pieces)) // ENTRY_SIZE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LastRecords):
            return NotImplemented
        return self._pieces == other._pieces

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return LastRecords, (self._pieces,)
