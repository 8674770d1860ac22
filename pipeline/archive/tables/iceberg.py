"""An Iceberg table in a directory (Iceberg's Hadoop catalog; its parent is the warehouse).

Each batch is one snapshot, which has its writer and its number as properties. A batch is not
appended if the table has its snapshot. No other process writes between that check and the append,
because of the lock of `pipeline.archive.place`.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from pipeline.archive.files import Files
from pipeline.archive.place import Place
from pipeline.archive.tables.table import PARTITIONED_BY, Compaction, WrittenFile
from storage.reader.arrow.schema import MOST_MS

CATALOG: Final = "lake"
WRITER: Final = "pykafkalog.writer"
BATCH: Final = "pykafkalog.batch"
_VERSION: Final = re.compile(r"^v\d+\.(gz\.)?metadata\.json(\.gz)?$")
_PROPERTIES: Final = {
    "format-version": "2",
    "write.spark.accept-any-schema": "true",
    # Each task has one partition of Kafka, in order; a shuffle would only mix them.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # Bounds are useful only for these three columns, not for the columns of values.
    "write.metadata.metrics.default": "none",
    "write.metadata.metrics.column.partition": "full",
    "write.metadata.metrics.column.offset": "full",
    "write.metadata.metrics.column.timestamp": "full",
}


def settings(place: Place) -> dict[str, str]:
    """Return the settings of a session in which the table is `lake.<its name>`."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": place.table.rpartition("/")[0] or "/",
        f"{prefix}.cache-enabled": "false",
    }


class IcebergTable:
    """The table at a path, for a session with `settings`."""

    latest_ms: Final = MOST_MS

    def __init__(self, session: Any, place: Place) -> None:
        self._session = session
        self._place = place
        self._files = Files(session)
        self._name = f"{CATALOG}.`{place.table.rpartition('/')[2]}`"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to the table."""
        # A creation that was killed leaves the directory without a version in it.
        return not any(
            _VERSION.match(entry.name)
            for entry in self._files.entries(f"{self._place.table}/metadata")
        )

    def allows(self, name: str) -> bool:
        """See `LakeTable`."""
        return True

    def append(self, frame: Any, writer: str, batch: int) -> list[WrittenFile]:
        """See `LakeTable`."""
        if self.is_empty:
            self._create(frame)
        elif self._has(writer, batch):
            return []
        (
            frame.writeTo(self._name)
            .option(f"snapshot-property.{WRITER}", writer)
            .option(f"snapshot-property.{BATCH}", str(batch))
            .option("mergeSchema", "true")
            .append()
        )
        return list(self._added(writer, batch))

    def compact(self, target_bytes: int, committed: int | None, writer: str | None) -> Compaction:
        """See `LakeTable`."""

        def count() -> Any:
            return self._session.sql(
                f"SELECT count(*) files, coalesce(sum(file_size_in_bytes), 0) bytes"
                f" FROM {self._name}.files"
            ).first()

        before = count()["files"]
        unqualified = self._name.partition(".")[2]
        self._session.sql(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{unqualified}',"
            f" strategy => 'sort', sort_order => 'partition, offset',"
            f" options => map('target-file-size-bytes', '{target_bytes}', 'min-input-files', '2'))"
        ).collect()
        after = count()
        return Compaction(before, after["files"], after["bytes"])

    def _create(self, frame: Any) -> None:
        creation = frame.limit(0).writeTo(self._name).using("iceberg")
        for key, value in _PROPERTIES.items():
            creation = creation.tableProperty(key, value)
        creation.partitionedBy(*(frame[name] for name in PARTITIONED_BY)).create()

    def _has(self, writer: str, batch: int) -> bool:
        found = self._session.sql(
            f"SELECT 1 FROM {self._name}.snapshots WHERE summary['{WRITER}'] = '{writer}'"
            f" AND CAST(summary['{BATCH}'] AS BIGINT) >= {batch} LIMIT 1"
        )
        return bool(found.collect())

    def _added(self, writer: str, batch: int) -> Iterator[WrittenFile]:
        """Yield the data files of a batch's snapshot."""
        rows = self._session.sql(
            f"""
            SELECT data_file.partition.topic AS topic,
                CAST(data_file.partition.date AS STRING) AS date,
                data_file.record_count AS records, data_file.file_size_in_bytes AS bytes,
                readable_metrics.partition.lower_bound AS partition,
                readable_metrics.offset.lower_bound AS first,
                readable_metrics.offset.upper_bound AS last
            FROM {self._name}.entries
            WHERE status = 1 AND snapshot_id = (
                SELECT max(snapshot_id) FROM {self._name}.snapshots
                WHERE summary['{WRITER}'] = '{writer}' AND summary['{BATCH}'] = '{batch}')
            """
        )
        for row in rows.collect():
            yield WrittenFile(
                row["topic"],
                row["partition"],
                row["date"],
                row["records"],
                row["first"],
                row["last"],
                row["bytes"],
            )
