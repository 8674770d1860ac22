"""A directory of Parquet files that any reader may list and read: each record once.

    topic=orders/date=2026-11-22/0a1b2c3d-0000000012-00003.parquet

A file holds the records of one batch (12) of one writer (the first letters of the checkpoint's id)
from one partition (3) for one day, in the order of offsets.

A reader finds, at any moment and after any crash:

1. Only whole files. Spark writes a batch into `staging`, outside the table; the files are renamed
   into the table when the whole batch is written.
2. Each record once. A file's name contains its batch, and the offsets of a batch never change. A
   batch that is repeated keeps the files that exist and adds those that a crash left out.
3. If a batch was cut off between two renames, some of its partitions or days but not yet others.
   The next start adds the rest. A reader that needs batches to be atomic takes Iceberg or Delta.

Spark's own file sink lists its files in `_spark_metadata`, which only Spark reads: other readers
see the files of a failed batch beside those of its second attempt (decision 63).

A compaction builds a day's new directory beside the table and exchanges the two in one step
(`renameat2`, RENAME_EXCHANGE): a reader that lists the directory sees the old files or the new
ones. It does not merge files of batches that may be repeated. Object stores have no such step, so a
compaction is refused there (decision 64).
"""

import ctypes
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pipeline.archive.files import Entry, Files
from pipeline.archive.place import Place, is_local
from pipeline.archive.tables.table import Compaction, WrittenFile
from pipeline.errors import PipelineError
from storage.reader.arrow.schema import MOST_MS

NAME: Final = re.compile(r"^([0-9a-f]{8})-(\d{10})-(\d{5})\.parquet$")
_LEAF: Final = re.compile(r"/topic=([^/]+)/date=([^/]+)/p=(\d+)/[^/]+$")
_EXCHANGE: Final = 2
"""RENAME_EXCHANGE of renameat2(2)."""
_AT_FDCWD: Final = -100


def file_name(writer: str, batch: int, partition: int) -> str:
    """Return the name of the file with these records in its directory."""
    return f"{writer[:8]}-{batch:010d}-{partition:05d}.parquet"


class ParquetTable:
    """A directory of Parquet files that holds each record once, appended to batch by batch."""

    latest_ms: Final = MOST_MS

    def __init__(self, session: Any, place: Place) -> None:
        self._session = session
        self._table = place.table
        self._staging = f"{place.staging}/batch"
        self._aside = f"{place.staging}/compaction"
        self._files = Files(session)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to the table."""
        return not self._files.files_below(self._table)

    def allows(self, name: str) -> bool:
        """See `LakeTable`."""
        return True

    def append(self, frame: Any, writer: str, batch: int) -> list[WrittenFile]:
        """See `LakeTable`."""
        files = self._files
        files.delete(self._staging)
        (
            frame.withColumn("p", frame["partition"])
            .sortWithinPartitions("topic", "date", "p", "offset")
            .write.partitionBy("topic", "date", "p")
            .parquet(self._staging)
        )
        written: dict[str, tuple[str, int, str]] = {}
        for entry in files.files_below(self._staging):
            found = _LEAF.search(entry.path)
            if found is None:
                continue
            topic, date, partition = found[1], found[2], int(found[3])
            directory = f"{self._table}/topic={topic}/date={date}"
            target = f"{directory}/{file_name(writer, batch, partition)}"
            if target in written:
                raise PipelineError(f"batch {batch} has two files for {target}; nothing is lost")
            written[target] = (topic, partition, date)
            if not files.exists(target):
                files.rename(entry.path, target)
        files.delete(self._staging)
        return list(self._described(written))

    def _described(self, written: dict[str, tuple[str, int, str]]) -> Iterator[WrittenFile]:
        for path, (topic, partition, date) in written.items():
            records, first, last = self._files.offsets_in(path)
            yield WrittenFile(topic, partition, date, records, first, last, self._files.size(path))

    def compact(self, target_bytes: int, committed: int | None, writer: str | None) -> Compaction:
        """See `LakeTable`. Raises PipelineError, also for a table that is not local."""
        if not is_local(self._table):
            raise PipelineError(
                f"{self._table}: plain Parquet is compacted on local file systems only, because"
                " elsewhere files cannot be exchanged in one step; take Iceberg or Delta"
            )
        if Path(self._aside).exists():  # of a compaction that was killed
            shutil.rmtree(self._aside)
        total = Compaction()
        for topic in self._files.entries(self._table):
            for day in self._files.entries(topic.path) if topic.is_directory else ():
                one = self._compact_day(day.path, target_bytes, committed, writer)
                total = Compaction(
                    total.files_before + one.files_before,
                    total.files_after + one.files_after,
                    total.bytes_after + one.bytes_after,
                )
        return total

    def _compact_day(
        self, directory: str, target_bytes: int, committed: int | None, writer: str | None
    ) -> Compaction:
        entries = self._files.files_below(directory)
        small = [
            entry
            for entry in entries
            if entry.size < target_bytes and _is_settled(entry.name, committed, writer)
        ]
        size = sum(entry.size for entry in small)
        count = max(1, round(size / target_bytes))
        if len(small) <= count:
            return Compaction(len(entries), len(entries), sum(entry.size for entry in entries))
        aside = Path(self._aside) / Path(directory).relative_to(self._table)
        self._merge(small, count, aside)
        for entry in entries:
            if entry not in small:
                os.link(entry.path, aside / entry.name)
        _exchange(str(aside), directory)
        after = self._files.files_below(directory)
        shutil.rmtree(aside)  # the directory that was in the table before
        return Compaction(len(entries), len(after), sum(entry.size for entry in after))

    def _merge(self, small: list[Entry], count: int, aside: Path) -> None:
        """Write the rows of these files as `count` files into a new directory."""
        frame = self._session.read.option("mergeSchema", "true").parquet(
            *(entry.path for entry in small)
        )
        together = (
            frame.coalesce(1)
            if count == 1
            else frame.repartitionByRange(count, "partition", "offset")
        )
        together.sortWithinPartitions("partition", "offset").write.parquet(str(aside))
        for path in aside.iterdir():
            if path.suffix == ".parquet":
                path.rename(aside / f"merged-{path.name.removeprefix('part-')}")
            else:
                path.unlink()
        wanted = sum(self._files.offsets_in(entry.path)[0] for entry in small)
        got = sum(self._files.offsets_in(str(path))[0] for path in aside.iterdir())
        if wanted != got:
            raise PipelineError(f"{aside} has {got} records of {wanted}; the table is as it was")


def _is_settled(name: str, committed: int | None, writer: str | None) -> bool:
    """Return whether a file's batch will not be repeated, so that its name need not be kept."""
    found = NAME.match(name)
    if found is None or writer is None or found[1] != writer[:8]:
        return True
    return committed is not None and int(found[2]) <= committed


def _exchange(one: str, other: str) -> None:
    """Exchange the names of two directories in one step. Raises PipelineError."""
    system = ctypes.CDLL(None, use_errno=True)
    done = system.renameat2(_AT_FDCWD, one.encode(), _AT_FDCWD, other.encode(), _EXCHANGE)
    if done != 0:
        reason = os.strerror(ctypes.get_errno())
        raise PipelineError(
            f"{other} cannot be compacted: its file system does not exchange directories ({reason})"
        )
