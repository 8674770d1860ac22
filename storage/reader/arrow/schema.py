"""The columns of records in Arrow, as Spark's kafka source has them, in its order."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)
"""`timestampType`: -1 none (format 0), 0 CreateTime, 1 LogAppendTime. `headers` is null if a record
has none. A record of format 0 is dated one millisecond before 1970, as in Spark."""

NO_TIMESTAMP_TYPE: Final = -1


def schema_of(columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of these columns, in this order; None: all. Raises ValueError."""
    if columns is None:
        return SCHEMA
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise ValueError(
            f"records have no column {', '.join(unknown)}; they have {', '.join(SCHEMA.names)}"
        )
    return pa.schema([SCHEMA.field(name) for name in columns])
