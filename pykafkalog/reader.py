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
nothing is opened for writing, repaired, locked or mapped. What is not whole yet is where a view
ends. Damage is told as values where a log can be read on (`Batch.valid`, `SegmentView.ended`,
`RecordChunk.unreadable`) and raised where it cannot (`RecordsError`, `CorruptSnapshot`, …).

`__all__` below is the whole of what is public, in four groups: views (where to begin), what they
hand out, columns, and errors. docs/reader.md in the repository is the guide.
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
    from storage.reader.columns import BATCH_COLUMNS, RECORD_COLUMNS, Columns, RecordChunk

__all__ = [
    # Views.
    "LogDirView",
    "PartitionView",
    "SegmentView",
    "RecordFileView",
    # What they hand out.
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
    # Errors.
    "RecordsError",
    "CheckpointError",
    "CorruptIndex",
    "CorruptSnapshot",
    "InconsistentMetaProperties",
]

if not TYPE_CHECKING:  # a type checker would believe that every name is there
    _OF_COLUMNS = frozenset({"BATCH_COLUMNS", "RECORD_COLUMNS", "Columns", "RecordChunk"})

    def __getattr__(name: str) -> Any:
        # numpy is imported when the first columns are asked for; values do without it.
        if name not in _OF_COLUMNS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from storage.reader import columns

        return getattr(columns, name)
