"""A table by the name of its format, and what a session needs for it."""

from typing import Any

from pipeline.archive.place import Place
from pipeline.archive.tables import delta, iceberg
from pipeline.archive.tables.delta import DeltaTable
from pipeline.archive.tables.iceberg import IcebergTable
from pipeline.archive.tables.parquet import ParquetTable
from pipeline.archive.tables.table import LakeTable
from pipeline.session import DELTA, ICEBERG

# Without a checksum file beside each file: the two are renamed one after the other.
_PLAIN_CHECKPOINT = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
_PLAIN_FILES = {
    # Iceberg asks it for its scheme, which it has not.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    **_PLAIN_CHECKPOINT,
}


def requirements(table_format: str, place: Place) -> tuple[tuple[str, ...], dict[str, str]]:
    """(packages, settings) of a session that writes such a table."""
    if table_format == "iceberg":
        return (ICEBERG,), {**_PLAIN_CHECKPOINT, **iceberg.settings(place)}
    if table_format == "delta":
        return (DELTA,), {**_PLAIN_CHECKPOINT, **delta.SETTINGS}
    return (), dict(_PLAIN_FILES)


def open_table(table_format: str, session: Any, place: Place) -> LakeTable:
    """The table at a place; made by its first append."""
    if table_format == "iceberg":
        return IcebergTable(session, place)
    if table_format == "delta":
        return DeltaTable(session, place)
    return ParquetTable(session, place)
