"""Decodes values as bytes, text, JSON or Avro.

`Decoding.apply` puts the decoded value into `value` and a reason into `value_error`, which is null
if the value is as declared, and for a tombstone.

An inferred schema is stored beside the table (`description`), so that the next start uses it too.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from pipeline.archive.registry import FRAME_BYTES, Registry
from pipeline.errors import PipelineError

FORMATS: Final = ("bytes", "text", "json", "avro")
ERROR: Final = "value_error"
_CORRUPT: Final = "_not_as_declared"
_DECODED: Final = "pykafkalog_decoded"
_UNKNOWN_ID: Final = "has no schema id of this registry in front"


def declared_schema(text: str) -> DataType:
    """Parse a Spark type from DDL (`id BIGINT, name STRING`) or Spark's JSON form.

    The JSON form is that of `df.schema.json()`. Raises PipelineError.
    """
    from pyspark.errors import PySparkException

    try:
        if text.lstrip().startswith("{"):
            return StructType.fromJson(json.loads(text))
        return DataType.fromDDL(text)
    except (PySparkException, ValueError, KeyError) as error:
        raise PipelineError(f"the schema is not understood: {str(error).splitlines()[0]}") from None


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
    def looks_at_values(self) -> bool:
        """Whether decoding a batch reads it twice: first for the schema ids in it."""
        return self.registry is not None

    def apply(self, frame: Any) -> Any:
        """Return the frame with `key` and `value` decoded and a column `value_error`."""
        decoded = frame
        if self.key == "text":
            decoded = decoded.withColumn("key", F.col("key").cast("string"))
        value, error = self._columns(frame)
        wrong = F.when(F.col("value").isNotNull(), error)
        return decoded.withColumns({"value": value, ERROR: wrong})

    def _columns(self, frame: Any) -> tuple[Any, Any]:
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
            return value, F.coalesce(not_text, F.when(wrong, "is not the declared JSON"))
        value = self._avro(frame, raw)
        undecoded = F.when(value.isNull(), F.lit("is not the declared Avro"))
        if self.registry is not None:
            known = F.col("value").substr(1, 1) == F.unhex(F.lit("00"))
            undecoded = F.when(~known, F.lit(_UNKNOWN_ID)).otherwise(undecoded)
        return value, undecoded

    def _avro(self, frame: Any, raw: Any) -> Any:
        from pyspark.sql.avro.functions import from_avro

        assert self.avro_schema is not None
        read_as, marked = _marked(self.avro_schema)
        options = {"mode": "PERMISSIVE", "avroSchema": read_as}
        if self.registry is None:
            return _unmarked(from_avro(raw, self.avro_schema, options), marked)
        payload = F.expr(f"substring(value, {FRAME_BYTES + 1})")
        schema_id = _schema_id()
        rows = frame.where("value IS NOT NULL").select(schema_id.alias("id")).distinct().collect()
        # This branch is never taken; it gives the column its type if no id is known.
        value = F.when(F.lit(False), from_avro(payload, self.avro_schema, options))
        for row in rows:
            written_as = None if row["id"] is None else self.registry.schema(row["id"])
            if written_as is not None:
                value = F.when(
                    schema_id == row["id"], from_avro(payload, written_as, options)
                ).otherwise(value)
        return _unmarked(value, marked)


def _marked(avro_schema: str) -> tuple[str, bool]:
    """Return (schema to read by, whether it has the mark): a field that is 1 in every record.

    If bytes are not a record, Spark returns one whose fields are all null. No writer's schema has
    the mark, so every record that was decoded has the mark's default.
    """
    try:
        schema = json.loads(avro_schema)
    except ValueError:
        raise PipelineError("the Avro schema is no JSON") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return avro_schema, False
    mark = {"name": _DECODED, "type": "int", "default": 1}
    return json.dumps({**schema, "fields": [*schema["fields"], mark]}), True


def _unmarked(value: Any, marked: bool) -> Any:
    """Return the value without the mark; null if it was not decoded."""
    if not marked:
        return value
    return F.when(value[_DECODED].isNotNull(), value.dropFields(_DECODED))


def _schema_id() -> Any:
    """Return a value's schema id: four bytes, big endian, after a zero byte; null without one."""
    framed = F.expr(f"length(value) >= {FRAME_BYTES} AND substring(value, 1, 1) = X'00'")
    return F.when(framed, F.conv(F.hex(F.expr("substring(value, 2, 4)")), 16, 10).cast("int"))


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
    frame = session.read.option("columnNameOfCorruptRecord", _CORRUPT).json(
        session.sparkContext.parallelize(texts, 1)
    )
    fields = [f for f in frame.schema.fields if f.name != _CORRUPT]
    if not fields:
        raise PipelineError(
            f"no schema can be inferred: none of {len(texts)} values is a JSON object;"
            " give one with --json-schema"
        )
    return StructType(fields)


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
