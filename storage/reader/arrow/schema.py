"""The columns of records in Arrow, as Spark's kafka source has them, in its order.

A timestamp of Kafka is any int64 of milliseconds. The column `timestamp` counts microseconds, so it
holds those from `LEAST_MS` to `MOST_MS`; `timestampMs`, which has to be named, holds all.
"""

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
MOST_MS: Final = (2**63 - 1) // 1000
"""The latest time that `timestamp` holds, ms: 294247-01-10."""
LEAST_MS: Final = -MOST_MS

WITH_MS: Final = SCHEMA.append(pa.field("timestampMs", pa.int64()))
"""All columns: those that a caller can request from a reader, and those of a dataset."""


def schema_of(columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of these columns, in this order; None: `SCHEMA`. Raises ValueError."""
    if columns is None:
        return SCHEMA
    unknown = [name for name in columns if name not in WITH_MS.names]
    if unknown:
        raise ValueError(
            f"records have no column {', '.join(unknown)}; they have {', '.join(WITH_MS.names)}"
        )
    return pa.schema([WITH_MS.field(name) for name in columns])
