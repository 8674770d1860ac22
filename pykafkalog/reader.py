"""Kafka's log directories as Python values and numpy columns, without a broker.

    >>> from pykafkalog.reader import LogDirView, PartitionView
    >>> [view.topic_partition for view in LogDirView("/tmp/kafka-logs").partitions()]
    [TopicPartition(topic='orders', partition=0)]
    >>> orders = PartitionView("/tmp/kafka-logs/orders-0")
    >>> [(record.offset, record.key, record.value) for record in orders.records()]
    [(0, b'anna', b'2 teapots'), (1, b'bert', b'1 kettle'), (2, b'anna', None)]
    >>> orders.columns()["value_length"]
    array([ 9,  8, -1], dtype=int32)
    >>> orders.segments()[0].check_indexes()
    []

Directories of this broker and of Apache Kafka are read alike, also while a broker writes to them:
nothing is opened for writing, repaired, locked or mapped. A view ends before a batch that is not
written whole. Damage is returned as a value if the log can be read past it (`Batch.valid`,
`SegmentView.ended`, `RecordChunk.unreadable`), and raised if not (`RecordsError`,
`CorruptSnapshot`, …).

`open_topics` gives whole topics as Arrow record batches, tables and lazy datasets for pandas,
Polars and DuckDB, bounded by what is committed (needs pyarrow).

`__all__` below is the whole public interface, in five groups: views (where to begin), the values
that they return, columns, topics in Arrow, and errors. docs/reader.md in the repository is the
guide.
"""

from typing import TYPE_CHECKING, Any

from protocol.records.batch import BatchHeader
from protocol.records.errors import RecordsError
from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.paths import DirState
from storage.reader import (
    OFFSET_CHECKPOINTS,
    AbortedTxn,
    Batch,
    CheckpointError,
    CorruptIndex,
    CorruptSnapshot,
    Ended,
    EpochEntry,
    InconsistentMetaProperties,
    IndexFlaw,
    IndexProblem,
    LogDirView,
    MetaProperties,
    PartitionView,
    ProducerStateEntry,
    RecordFileView,
    SegmentView,
)

if TYPE_CHECKING:
    from pykafkalog.topics import TopicReader, open_topics
    from storage.reader.columns import BATCH_COLUMNS, RECORD_COLUMNS, Columns, RecordChunk
    from storage.reader.scan import (
        CorruptLog,
        NoLogDirectory,
        PartitionRange,
        RecordsGone,
        ScanError,
        ScanPlan,
        ScanTask,
        TimestampOutOfRange,
        UnknownTopic,
    )

__all__ = [
    # Views.
    "LogDirView",
    "PartitionView",
    "SegmentView",
    "RecordFileView",
    # Values that they return.
    "Record",
    "Batch",
    "BatchHeader",
    "TopicPartition",
    "DirState",
    "MetaProperties",
    "OFFSET_CHECKPOINTS",
    "EpochEntry",
    "ProducerStateEntry",
    "AbortedTxn",
    "Ended",
    "IndexProblem",
    "IndexFlaw",
    # Columns.
    "RecordChunk",
    "Columns",
    "RECORD_COLUMNS",
    "BATCH_COLUMNS",
    # Topics in Arrow.
    "open_topics",
    "TopicReader",
    "ScanPlan",
    "ScanTask",
    "PartitionRange",
    # Errors.
    "ScanError",
    "UnknownTopic",
    "NoLogDirectory",
    "RecordsGone",
    "CorruptLog",
    "TimestampOutOfRange",
    "RecordsError",
    "CheckpointError",
    "CorruptIndex",
    "CorruptSnapshot",
    "InconsistentMetaProperties",
]

if not TYPE_CHECKING:  # with a `__getattr__`, a type checker would accept any name
    # numpy is imported with the first use of columns; the other values do not need it.
    _OF_COLUMNS = frozenset({"BATCH_COLUMNS", "RECORD_COLUMNS", "Columns", "RecordChunk"})
    _OF_TOPICS = frozenset({"open_topics", "TopicReader"})

    def __getattr__(name: str) -> Any:
        if name in _OF_COLUMNS:
            from storage.reader import columns as module
        elif name in _OF_TOPICS:
            from pykafkalog import topics as module
        elif name in __all__:
            from storage.reader import scan as module
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(module, name)
