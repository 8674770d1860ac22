"""Decodes Avro values, each as a whole: bytes that are left over are an error.

Spark reads as many bytes as the schema asks for and ignores the rest, so a value of a newer schema
would lose the fields at its end; and of bytes that are no record it makes one of nulls. So an end
is put behind the value, and the schemas get a field for it: `(value, end)`. The value was decoded,
to its last byte, if the end is found where it ends.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import functions as F

from pipeline.archive.registry import FRAME_BYTES
from pipeline.errors import PipelineError

_END: Final = "9e7c4b1f20d8a365"
_END_TYPE: Final = {"type": "fixed", "name": "pykafkalog_end", "size": len(_END) // 2}


def plain(schema: str) -> Any:
    """Return the column `value` decoded by a schema; null if it is not so."""
    return _decoded(F.col("value"), schema, schema)


def framed(schema: str, written_as: Mapping[int, str]) -> Any:
    """Return the column `value`, which begins with a schema id, read by `schema`.

    It is null if the id is not in `written_as`.
    """
    payload = F.expr(f"substring(value, {FRAME_BYTES + 1})")
    # This branch is never taken; it gives the column its type if no id is known.
    value = F.when(F.lit(False), _decoded(payload, schema, schema))
    for number, written in written_as.items():
        decoded = _decoded(payload, written, schema)
        value = F.when(schema_id() == number, decoded).otherwise(value)
    return value


def schema_id() -> Any:
    """Return a value's schema id: four bytes, big endian, after a zero byte; null without one."""
    is_framed = F.expr(f"length(value) >= {FRAME_BYTES} AND substring(value, 1, 1) = X'00'")
    return F.when(is_framed, F.conv(F.hex(F.expr("substring(value, 2, 4)")), 16, 10).cast("bigint"))


def _decoded(data: Any, written: str, read: str) -> Any:
    from pyspark.sql.avro.functions import from_avro

    end = F.unhex(F.lit(_END))
    options = {"mode": "PERMISSIVE", "avroSchema": _with_end(read)}
    both = from_avro(F.concat(data, end), _with_end(written), options)
    return F.when(both["end"] == end, both["value"])


def _with_end(schema: str) -> str:
    try:
        value = json.loads(schema)
    except ValueError:
        raise PipelineError("the Avro schema is no JSON") from None
    fields = [{"name": "value", "type": value}, {"name": "end", "type": _END_TYPE}]
    return json.dumps({"type": "record", "name": "pykafkalog_value", "fields": fields})
