"""A read-only view of log directories without a broker: batches, records, indexes, snapshots.

    view = PartitionView("/tmp/kafka-logs/orders-0")
    for record in view.records(): ...                  # Python values
    view.columns()["timestamp"]                        # numpy columns, a row per record
    view.segments()[0].check_indexes()                 # sentences

Nothing is opened for writing, repaired, locked or mapped (`read_only`), so a directory that a
broker is using may be read, and so may one that Kafka wrote. A view ends before a batch that is not
whole yet (`SegmentView.ended`). Damage is returned as values (`Batch.valid`, `ended`,
`RecordChunk.unreadable`), not raised, so that all good data can be read.

Command-line tools and the pipeline read files through this room; `storage.check` tells what a
restart would do to them. Column names and dtypes: `storage.reader.columns`.
"""

from storage.epochs import EpochEntry
from storage.errors import (
    CheckpointError,
    CorruptIndex,
    CorruptSnapshot,
    InconsistentMetaProperties,
)
from storage.index.transaction_index import AbortedTxn
from storage.log.scan import Ended
from storage.log_dir import MetaProperties
from storage.paths import (
    CLEAN_SHUTDOWN_FILE,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_segment_file,
)
from storage.producers.entry import ProducerStateEntry
from storage.reader.batch import Batch
from storage.reader.frames import Frames
from storage.reader.index_problem import IndexFlaw, IndexProblem
from storage.reader.log_dir import OFFSET_CHECKPOINTS, LogDirView
from storage.reader.partition import PartitionView
from storage.reader.record_file import RecordFileView
from storage.reader.segment import SegmentView

__all__ = [
    "CLEAN_SHUTDOWN_FILE",
    "INDEX_SUFFIX",
    "LEADER_EPOCH_CHECKPOINT",
    "LOG_SUFFIX",
    "META_PROPERTIES",
    "OFFSET_CHECKPOINTS",
    "PARTITION_METADATA",
    "SNAPSHOT_SUFFIX",
    "TIME_INDEX_SUFFIX",
    "TXN_INDEX_SUFFIX",
    "AbortedTxn",
    "Batch",
    "CheckpointError",
    "CorruptIndex",
    "CorruptSnapshot",
    "Ended",
    "Frames",
    "EpochEntry",
    "InconsistentMetaProperties",
    "IndexFlaw",
    "IndexProblem",
    "LogDirView",
    "MetaProperties",
    "PartitionView",
    "ProducerStateEntry",
    "RecordFileView",
    "SegmentView",
    "parse_segment_file",
]
