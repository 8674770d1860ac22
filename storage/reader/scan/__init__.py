"""Reading a log directory in parallel, first half: planning what to read, as values that pickle.

    request = ScanRequest(directories=("/tmp/kafka-logs",), topics=("orders",))
    for task in plan(request).tasks: ...       # each may be read anywhere (`storage.reader.arrow`)

A plan consists of ranges of offsets, which stay valid if the files change (`ScanTask`). It never
goes beyond the high watermark unless asked to, so it has nothing that a broker is writing.
"""

from storage.reader.scan.errors import (
    CorruptLog,
    NoLogDirectory,
    RecordsGone,
    ScanError,
    TimestampOutOfRange,
    UnknownTopic,
)
from storage.reader.scan.planning import plan
from storage.reader.scan.request import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    Kind,
    Position,
    Positions,
    ScanRequest,
)
from storage.reader.scan.selecting import partitions_in
from storage.reader.scan.tasks import PartitionRange, ScanPlan, ScanTask

__all__ = [
    "EARLIEST",
    "LATEST",
    "CorruptLog",
    "IsolationLevel",
    "Kind",
    "NoLogDirectory",
    "PartitionRange",
    "Position",
    "Positions",
    "RecordsGone",
    "ScanError",
    "ScanPlan",
    "ScanRequest",
    "ScanTask",
    "TimestampOutOfRange",
    "UnknownTopic",
    "partitions_in",
    "plan",
]
