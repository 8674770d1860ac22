"""Decodes values as bytes, text, JSON or Avro.

`Decoding.apply` puts the decoded value into `value` and a reason into `value_error`, which is null
if key and value are as declared, and for a tombstone.

An inferred schema is stored beside the table (`description`), so that the next start uses it too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pipeline.archive import avro_values
from pipeline.archive.growth import grown
from pipeline.archive.registry import Registry
from pipeline.archive.unknown import unknown_fields
from pipeline.errors import PipelineError

FORMATS: Final = ("bytes", "text", "json", "avro")
ERROR: Final = "value_error"
TIME_ERROR: Final = "time_error"
"""A column of a batch that was read exactly: why its timestamp is null, or null."""
NO_COLUMNS: Final = "has fields that are no columns of the table: "
_CORRUPT: Final = "_not_as_declared"
_UNKNOWN_ID: Final = "has no schema id of this registry in front"
_OF_JSON: Final = {"struct": StructType, "array": ArrayType, "map": MapType}


def declared_schema(text: str) -> DataType:
    """Parse a Spark type from DDL (`id BIGINT, name STRING`) or Spark's JSON form.

    The JSON form is that of `df.schema.json()`. Raises PipelineError.
    """
    from pyspark.errors import PySparkException

    try:
        if text.lstrip().startswith("{"):
            return stored_schema(json.loads(text))
        return DataType.fromDDL(text)
    except (PySparkException, ValueError, KeyError) as error:
        raise PipelineError(f"the schema is not understood: {str(error).splitlines()[0]}") from None


def stored_schema(form: Any) -> DataType:
    """Return the type of Spark's JSON form of it. Raises KeyError, ValueError if it is none."""
    return _OF_JSON[form["type"]].fromJson(form)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How values are decoded; keys are bytes or text."""

    value: str = "bytes"
    key: str = "bytes"
    schema: DataType | None = None
    """Type of JSON values."""
    avro_schema: str | None = None
    """Schema of Avro values, as JSON; it gives the column its type."""
    registry: Registry | None = field(default=None, compare=False)
    """If given, values begin with a schema id of this registry."""

    @property
    def may_grow(self) -> bool:
        """Whether values tell of fields that the schema does not have."""
        return self.value == "json" or self.registry is not None

    def apply(self, frame: Any, known: "Known | None" = None) -> Any:
        """Return the frame with `key` and `value` decoded and a column `value_error`."""
        decoded, wrong_key = frame, F.lit(None).cast("string")
        if self.key == "text":
            key = F.col("key").cast("string")
            wrong_key = F.when(~F.is_valid_utf8(key), F.lit("has a key that is not UTF-8"))
            decoded = decoded.withColumns({"key": key})
        value, error = self._columns(known or Known())
        wrong = F.coalesce(wrong_key, F.when(F.col("value").isNotNull(), error))
        if TIME_ERROR in frame.columns:
            wrong = F.coalesce(F.col(TIME_ERROR), wrong)
        return decoded.withColumns({"value": value, ERROR: wrong})

    def _columns(self, known: "Known") -> tuple[Any, Any]:
        """Return the columns (decoded value, reason why it is not as declared, or null)."""
        raw = F.col("value")
        if self.value == "bytes":
            return raw, F.lit(None).cast("string")
        text = raw.cast("string")
        not_text = F.when(~F.is_valid_utf8(text), F.lit("is not UTF-8"))
        if self.value == "text":
            return text, not_text
        if self.value == "json":
            assert self.schema is not None
            value, wrong = _json(text, self.schema)
            error = F.coalesce(not_text, F.when(wrong, "is not the declared JSON"))
            if known.strictly:
                error = F.coalesce(error, _lost(text, self.schema, known.drops))
            return value, error
        assert self.avro_schema is not None
        if self.registry is None:
            value = avro_values.plain(self.avro_schema)
            return value, F.when(value.isNull(), F.lit("is not the declared Avro"))
        value = avro_values.framed(self.avro_schema, known.written_as)
        error = F.when(value.isNull(), F.lit("is not the declared Avro"))
        number = avro_values.schema_id()
        for refused, paths in known.refused.items():
            error = F.when(number == refused, F.lit(NO_COLUMNS + ", ".join(paths))).otherwise(error)
        framed = F.col("value").substr(1, 1) == F.unhex(F.lit("00"))
        return value, F.when(~framed, F.lit(_UNKNOWN_ID)).otherwise(error)


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about a batch that are known before it is decoded (`pipeline.archive.evolving`)."""

    strictly: bool = True
    """Whether a JSON value may have a field that the schema does not have, or one field twice."""
    drops: bool = False
    """Whether such a field is dropped, and is no error."""
    written_as: Mapping[int, str] = field(default_factory=dict)
    """The Avro schemas by the ids that the values have."""
    refused: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The fields that have no column, by the ids whose values are not taken."""


def _lost(text: Any, schema: DataType, drops: bool) -> Any:
    """Return a reason why a value that Spark has decoded lost a field; null if it did not."""
    strict = F.try_parse_json(text)
    twice = F.when(strict.isNull(), "names a field twice, or is no strict JSON")
    if drops:
        return twice
    unknown = unknown_fields(strict, schema)
    some = F.array_join(F.slice(F.array_sort(F.array_distinct(unknown)), 1, 10), ", ")
    return F.coalesce(twice, F.when(F.size(unknown) > 0, F.concat(F.lit(NO_COLUMNS), some)))


def _json(text: Any, schema: DataType) -> tuple[Any, Any]:
    """Return (value, whether it is not as declared); a missing field is null and no error."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    # Spark parses one value and ignores anything after it.
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    more = ~F.coalesce(alone, F.lit(False))
    if not isinstance(schema, StructType):
        value = F.from_json(text, schema, options)
        return value, value.isNull() | more
    extended = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    parsed = F.from_json(text, extended, options)
    wrong = parsed.isNull() | parsed[_CORRUPT].isNotNull() | more
    return parsed.dropFields(_CORRUPT), wrong


def infer_json_schema(session: Any, texts: list[str]) -> StructType:
    """Infer a schema with Spark. Raises PipelineError if none of the values is a JSON object."""
    values = session.createDataFrame([(text,) for text in texts], "value STRING")
    schema = grown(StructType([]), inferred(session, values)).schema
    assert isinstance(schema, StructType)
    if not schema.fields:
        raise PipelineError(
            f"no schema can be inferred: none of {len(texts)} values is a JSON object with a value;"
            " give one with --json-schema"
        )
    return schema


def inferred(session: Any, texts: Any) -> StructType:
    """Return the fields that Spark finds in a frame of JSON texts and that hold something."""
    reader = session.read.option("columnNameOfCorruptRecord", _CORRUPT)
    reader = reader.option("dropFieldIfAllNull", "true")
    encoder = session._jvm.org.apache.spark.sql.Encoders.STRING()
    # PySpark has no call for it, but one that has each text pass through a Python process.
    found = reader._jreader.json(getattr(texts._jdf, "as")(encoder)).schema().json()
    fields = StructType.fromJson(json.loads(found)).fields
    return StructType([field for field in fields if field.name != _CORRUPT])


def refusing(frame: Any) -> Any:
    """Return the frame without `value_error`; a row with an error fails the batch, naming it."""
    sentence = F.concat(
        F.lit("the value in topic "),
        F.col("topic"),
        F.lit(", partition "),
        F.col("partition"),
        F.lit(", offset "),
        F.col("offset"),
        F.lit(" "),
        F.col(ERROR),
        F.lit("; nothing of its batch is in the table (--dead-letter DIR puts such values aside)"),
    )
    value = F.when(F.col(ERROR).isNotNull(), F.raise_error(sentence)).otherwise(F.col("value"))
    return frame.withColumn("value", value).drop(ERROR)
