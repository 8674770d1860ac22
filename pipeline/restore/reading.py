"""Rows of a table as records: `topic, partition, position, timestamp, key, value, headers`.

A table that an archive wrote has these columns. For another table the caller names them
(`Columns`); without a value column, the row as a JSON object is the value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pipeline.errors import PipelineError

FORMATS: Final = ("parquet", "iceberg", "delta", "csv", "json")
_NESTED: Final = (StructType, ArrayType, MapType)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a table's columns, by meaning; None if there is none."""

    topic: str | None = None
    partition: str | None = None
    offset: str | None = None
    timestamp: str | None = None
    key: str | None = None
    value: str | None = None
    headers: str | None = None
    value_as_json: bool = False
    """Whether a value that is a struct becomes JSON; otherwise it is refused."""

    def found_in(self, names: list[str]) -> "Columns":
        """Fill in columns that were not named, by an archive's names. Raises PipelineError."""
        found = {
            name: getattr(self, name) or (name if name in names else None)
            for name in ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        }
        for name, column in found.items():
            if column is not None and column not in names:
                raise PipelineError(
                    f"there is no column {column} for the {name}; there are {', '.join(names)}"
                )
        return Columns(**found, value_as_json=self.value_as_json)


def records(
    frame: Any,
    columns: Columns,
    topic: str | None,
    *,
    beside: Sequence[str] = (),
    row: Sequence[str] | None = None,
) -> Any:
    """Return the rows as records; `partition` and `position` are null if the table has none.

    `topic` is the topic of all rows if the table has no such column, `beside` are columns to keep,
    `row` the columns of a value that is the whole row (default: all). Raises PipelineError.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    if columns.topic is None and topic is None:
        raise PipelineError("the table has no column topic: name the topic with --topic")
    if columns.offset is not None and columns.partition is None:
        raise PipelineError("offsets are of a partition: name its column with --partition-column")
    null = F.lit(None)
    return frame.select(
        (F.lit(topic) if topic else F.col(_quoted(columns.topic)).cast("string")).alias("topic"),
        _or(null, columns.partition).cast("int").alias("partition"),
        _or(null, columns.offset).cast("bigint").alias("position"),
        _timestamp(columns.timestamp, types).alias("timestamp"),
        _key(columns, types).alias("key"),
        _value(columns, types, row or list(types)).alias("value"),
        _headers(columns.headers, types).alias("headers"),
        *(F.col(_quoted(name)) for name in beside),
    )


def _quoted(name: str | None) -> str:
    return f"`{name}`"


def _or(otherwise: Any, name: str | None) -> Any:
    return otherwise if name is None else F.col(_quoted(name))


def _key(columns: Columns, types: dict[str, DataType]) -> Any:
    if columns.key is None:
        return F.lit(None).cast("binary")
    return _bytes(columns.key, types[columns.key], as_json=True)


def _bytes(name: str, kind: DataType, *, as_json: bool) -> Any:
    column = F.col(_quoted(name))
    if isinstance(kind, BinaryType):
        return column
    if isinstance(kind, _NESTED):
        if not as_json:
            raise PipelineError(
                f"{name} is decoded ({kind.simpleString()[:60]}): its bytes are gone; with"
                " --value-as-json records get JSON of it"
            )
        return F.to_json(column, {"ignoreNullFields": "false"}).cast("binary")
    return column.cast("string").cast("binary")


def _value(columns: Columns, types: dict[str, DataType], row: Sequence[str]) -> Any:
    if columns.value is not None:
        return _bytes(columns.value, types[columns.value], as_json=columns.value_as_json)
    whole = F.struct(*(F.col(_quoted(name)) for name in row))
    return F.to_json(whole, {"ignoreNullFields": "false"}).cast("binary")


def _timestamp(name: str | None, types: dict[str, DataType]) -> Any:
    """Return a column of milliseconds since the epoch."""
    if name is None:
        return F.lit(None).cast("bigint")
    column, kind = F.col(_quoted(name)), types[name]
    if isinstance(kind, LongType):
        return column
    if isinstance(kind, (TimestampType, TimestampNTZType, DateType, StringType)):
        return F.unix_millis(column.cast("timestamp"))
    raise PipelineError(f"{name} is {kind.simpleString()}, which is no timestamp")


def _headers(name: str | None, types: dict[str, DataType]) -> Any:
    wanted = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
    if name is None:
        return F.lit(None).cast(wanted)
    column, kind = F.col(_quoted(name)), types[name]
    if isinstance(kind, MapType):
        column = F.map_entries(column)
    elif not isinstance(kind, ArrayType):
        raise PipelineError(f"{name} is {kind.simpleString()}, which are no headers")
    return column.cast(wanted)


def read_table(session: Any, path: str, table_format: str) -> Any:
    """Return the table as a frame. Raises PipelineError if it does not exist."""
    from pyspark.errors import AnalysisException

    reader = session.read
    try:
        if table_format == "iceberg":
            return session.table(f"lake.`{path.rpartition('/')[2]}`")
        if table_format == "csv":
            reader = reader.option("header", "true").option("inferSchema", "true")
        if table_format == "parquet":
            reader = reader.option("mergeSchema", "true")
        return reader.format(table_format).load(path)
    except AnalysisException as error:
        reason = str(error).splitlines()[0]
        raise PipelineError(f"{path} cannot be read as {table_format}: {reason}") from None


def format_of(names: list[str]) -> str:
    """Return a table's format, judged by the names in its directory (or its one file's name)."""
    if "_delta_log" in names:
        return "delta"
    if "metadata" in names and "data" in names:
        return "iceberg"
    for ending in ("csv", "json"):
        if any(name.removesuffix(".gz").endswith(f".{ending}") for name in names):
            return ending
    return "parquet"
