"""A Delta table. Delta itself stores the last batch of a writer and ignores a repeated one."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pipeline.archive.files import Files
from pipeline.archive.place import Place
from pipeline.archive.tables.table import PARTITIONED_BY, Compaction, WrittenFile
from storage.reader.arrow.schema import MOST_MS

SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Each batch reads the table's list of files; the default of 50 tasks is for millions of files.
    "spark.databricks.delta.snapshotPartitions": "4",
}
_FORBIDDEN: Final = frozenset(" ,;{}()\n\t=")
"""Delta's own list, for tables without column mapping."""
_COMMIT: Final = re.compile(r"^(\d{20})\.json$")


class DeltaTable:
    """The table at a path."""

    # Delta adds a millisecond to the latest of a file, and readers would fail if that overflowed.
    latest_ms: Final = MOST_MS - 1

    def __init__(self, session: Any, place: Place) -> None:
        self._session = session
        self._table = place.table
        self._files = Files(session)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to the table."""
        return self._last_commit() < 0

    def allows(self, name: str) -> bool:
        """See `LakeTable`."""
        return not _FORBIDDEN.intersection(name)

    def append(self, frame: Any, writer: str, batch: int) -> list[WrittenFile]:
        """See `LakeTable`."""
        before = self._last_commit()
        (
            frame.write.format("delta")
            .mode("append")
            .partitionBy(*PARTITIONED_BY)
            .option("txnAppId", writer)
            .option("txnVersion", batch)
            .option("mergeSchema", "true")
            .save(self._table)
        )
        commits = range(before + 1, self._last_commit() + 1)
        return [file for version in commits for file in self._added(version)]

    def compact(self, target_bytes: int, committed: int | None, writer: str | None) -> Compaction:
        """See `LakeTable`."""
        conf = self._session.conf
        conf.set("spark.databricks.delta.optimize.maxFileSize", str(target_bytes))
        conf.set("spark.databricks.delta.optimize.minFileSize", str(target_bytes))
        before = self._detail()["numFiles"]
        self._session.sql(f"OPTIMIZE delta.`{self._table}`").collect()
        after = self._detail()
        return Compaction(before, after["numFiles"], after["sizeInBytes"])

    def _detail(self) -> Any:
        return self._session.sql(f"DESCRIBE DETAIL delta.`{self._table}`").first()

    def _last_commit(self) -> int:
        versions = [
            int(found[1])
            for entry in self._files.entries(f"{self._table}/_delta_log")
            if (found := _COMMIT.match(entry.name))
        ]
        return max(versions, default=-1)

    def _added(self, version: int) -> Iterator[WrittenFile]:
        """Yield the data files that a commit added."""
        text = self._files.read(f"{self._table}/_delta_log/{version:020d}.json") or ""
        for line in text.splitlines():
            added = json.loads(line).get("add")
            if added is None:
                continue
            statistics = json.loads(added["stats"])
            least, greatest = statistics["minValues"], statistics["maxValues"]
            yield WrittenFile(
                topic=added["partitionValues"]["topic"],
                partition=least["partition"],
                date=added["partitionValues"]["date"],
                records=statistics["numRecords"],
                first_offset=least["offset"],
                last_offset=greatest["offset"],
                bytes=added["size"],
            )
