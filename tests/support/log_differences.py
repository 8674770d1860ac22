"""Describes the differences of two partition directories: segments, batches, records, indexes.

Compressed batches are compared by content, since two libraries compress the same to other bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Final

from protocol.records.batch import iter_batches
from protocol.records.header import BATCH_OVERHEAD, BatchHeader
from protocol.records.inflating import decompress
from protocol.records.record import iter_records
from storage.reader import PartitionView, SegmentView

_ANY_BYTES: Final = frozenset({"batch_length", "crc"})
"""Fields that may differ if the records are compressed."""
_BATCH_MOST = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    header: BatchHeader
    data: bytes

    def fields(self) -> dict[str, Any]:
        names = [name for name in BatchHeader.__slots__ if name not in _ANY_BYTES]
        return {name: getattr(self.header, name, None) for name in names}

    def payload(self) -> object:
        """Return its content, decompressed."""
        if self.header.magic < 2:
            return list(iter_records(self.data, 0))
        return decompress(self.header.codec, self.data[BATCH_OVERHEAD:])

    def __str__(self) -> str:
        return f"{self.fields()}"


def _batches(path: Path) -> list[_Batch]:
    data = path.read_bytes()
    found = [_Batch(h, data[at : at + h.size]) for at, h in iter_batches(data)]
    assert sum(len(batch.data) for batch in found) == len(data), path
    return found


def differences(kafkas: Path, ours: Path, *, most: int = 10) -> list[str]:
    """Return the first `most` sentences about differences."""
    return list(islice(_differences(kafkas, ours), most))


def _differences(kafkas: Path, ours: Path) -> Iterator[str]:
    theirs, own = sorted(_names(kafkas)), sorted(_names(ours))
    if theirs != own:
        yield (
            f"files: only Kafka's {sorted({*theirs} - {*own})}, "
            f"only ours {sorted({*own} - {*theirs})}"
        )
    for name in theirs:
        if name.endswith(".log") and name in own:
            yield from _log_differences(name, kafkas / name, ours / name)
    one, other = PartitionView(kafkas), PartitionView(ours)
    for mine, yours in zip(other.segments(), one.segments(), strict=False):
        where = f"segment {mine.base_offset}"
        if mine.aborted() != yours.aborted():
            yield f"{where}: aborted {yours.aborted()} (Kafka) {mine.aborted()} (ours)"
        for problem in mine.check_indexes():
            yield f"{where}: {problem}"
        if _sizes(yours) != _sizes(mine):
            continue  # the sizes decide where entries are due
        if mine.time_index() != yours.time_index():
            yield f"{where}: time index {yours.time_index()} (Kafka) {mine.time_index()} (ours)"
        if mine.offset_index() != yours.offset_index():
            yield (
                f"{where}: offset index {yours.offset_index()} (Kafka) {mine.offset_index()} (ours)"
            )
    if sorted(one.snapshots()) != sorted(other.snapshots()):
        yield f"snapshots: {one.snapshots()} (Kafka) {other.snapshots()} (ours)"


def _sizes(segment: SegmentView) -> list[int]:
    sizes: list[int] = segment.batch_columns()["size"].tolist()
    return sizes


def _names(directory: Path) -> Iterator[str]:
    """Yield the files of segments, without those that are being removed."""
    for path in directory.iterdir():
        is_of_segment = path.name[:1].isdigit() and path.suffix not in (".deleted", ".snapshot")
        # An empty index of aborted transactions is equivalent to none.
        if is_of_segment and (path.suffix != ".txnindex" or path.stat().st_size):
            yield path.name


def _log_differences(name: str, theirs: Path, own: Path) -> Iterator[str]:
    dates = [int(path.stat().st_mtime_ns) // 1_000_000 for path in (theirs, own)]
    if dates[0] != dates[1]:
        yield f"{name}: last modified {dates[0]} (Kafka) {dates[1]} (ours)"
    if theirs.read_bytes() == own.read_bytes():
        return
    counted = 0
    for yours, mine in zip_longest(_batches(theirs), _batches(own)):
        if counted == _BATCH_MOST:
            return
        if yours is None or mine is None:
            yield f"{name}: {'only ours' if yours is None else 'only Kafka'} has {mine or yours}"
        elif yours.data == mine.data:
            continue
        elif wrong := [
            f"{field} {value} (Kafka) {mine.fields()[field]} (ours)"
            for field, value in yours.fields().items()
            if mine.fields()[field] != value
        ]:
            yield f"{name}: batch at {yours.header.base_offset}: {', '.join(wrong)}"
        elif yours.payload() != mine.payload():
            held = [list(iter_records(batch.data, 0)) for batch in (yours, mine)]
            at = yours.header.base_offset
            yield f"{name}: batch at {at} holds {held[0]} (Kafka) {held[1]} (ours)"
        elif not yours.header.is_compressed:
            yield f"{name}: batch at {yours.header.base_offset}: other bytes of the same records"
        else:
            continue
        counted += 1
