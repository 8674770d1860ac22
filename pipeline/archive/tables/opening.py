"""Opens a table by the name of its format, and has the settings of its session."""

from typing import Any

from pipeline.archive.place import Place
from pipeline.archive.tables import delta, iceberg
from pipeline.archive.tables.delta import DeltaTable
from pipeline.archive.tables.iceberg import IcebergTable
from pipeline.archive.tables.parquet import ParquetTable
from pipeline.archive.tables.table import LakeTable
from pipeline.session import DELTA, ICEBERG

# No checksum files: a file and its checksum are renamed one after the other (decision 67).
_PLAIN_CHECKPOINT = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
_PLAIN_FILES = {
    # Not for Iceberg, which asks a file system for its scheme; this one has none.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    **_PLAIN_CHECKPOINT,
}


def requirements(table_format: str, place: Place) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return (packages, settings) of a session that writes such a table."""
    if table_format == "iceberg":
        return (ICEBERG,), {**_PLAIN_CHECKPOINT, **iceberg.settings(place)}
    if table_format == "delta":
        return (DELTA,), {**_PLAIN_CHECKPOINT, **delta.SETTINGS}
    return (), dict(_PLAIN_FILES)


def open_table(table_format: str, session: Any, place: Place) -> LakeTable:
    """Return the table at a place; its first append creates it."""
    if table_format == "iceberg":
        return IcebergTable(session, place)
    if table_format == "delta":
        return DeltaTable(session, place)
    return ParquetTable(session, place)
