"""Columns in Spark: those of its kafka source, and those that a job selects."""

from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pipeline.source.options import BadOption

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: Final[dict[str, Any]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}
_NAMED: Final[dict[str, Any]] = {**TYPES, "timestampMs": LongType()}
"""Those that a job's schema can name: `timestampMs` holds any timestamp of Kafka's exactly."""


def full_schema(*, headers: bool) -> StructType:
    """Return the schema of the kafka source."""
    return StructType(
        [StructField(name, kind) for name, kind in TYPES.items() if headers or name != "headers"]
    )


def columns_of(schema: StructType) -> list[str]:
    """Return the names in a job's schema. Raises BadOption for a column that is not ours."""
    for wanted in schema.fields:
        kind = _NAMED.get(wanted.name)
        if kind is None:
            raise BadOption(f"there is no column {wanted.name}; there are {', '.join(_NAMED)}")
        if wanted.dataType.simpleString() != kind.simpleString():
            raise BadOption(
                f"the column {wanted.name} is {kind.simpleString()}, "
                f"not {wanted.dataType.simpleString()}"
            )
    return list(schema.fieldNames())
