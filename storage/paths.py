"""Names on disk: those of every file and directory of a log, and how names are read back.

Layout (one directory per partition inside each log directory):

    <log dir>/meta.properties  .lock  .kafka_cleanshutdown  *-checkpoint      [.<16 hex>.tmp]
    <log dir>/<topic>-<partition>/                       a log
    <log dir>/<topic>-<partition>.<32 hex>-delete/       a log waiting to be removed (S-RET-8)
    <log dir>/<topic>-<partition>.<32 hex>-future/       a log being moved here
    <log dir>/<topic>-<partition>.<32 hex>-stray/        a log of no known topic
    .../<20 digits>.log .index .timeindex .txnindex .snapshot   [.cleaned | .swap | .deleted]

Pure functions on strings; nothing here touches a disk. Paths are joined with "/".
"""

from enum import StrEnum
from typing import Final, NamedTuple

from protocol.types import TopicPartition

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
STATE_SUFFIXES: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)

DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
STRAY_DIR_SUFFIX: Final = "-stray"

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
ABORTED_CHECKPOINT: Final = "aborted-transactions-checkpoint"
META_PROPERTIES: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

TEMPORARY_SUFFIX: Final = ".tmp"
_REPLACED: Final = (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
    ABORTED_CHECKPOINT,
    META_PROPERTIES,
    CLEAN_SHUTDOWN_FILE,
)
"""Files that are replaced whole, through a temporary file."""

_DIGITS: Final = 20
"""Digits of the base offset in a segment's file names."""

MAX_NAME_LENGTH: Final = 255
"""The most bytes that a path component may have on common file systems."""

MAX_PARTITION: Final = 2**31 - 1
"""Numbers of partitions have 32 bits, one for the sign."""
MAX_OFFSET: Final = 2**63 - 1
"""Offsets have 64 bits, one for the sign."""

_UNIQUE_LENGTH = 1 + 32
"""A dot and 32 hexadecimal digits before `-delete` and its kin."""


class DirState(StrEnum):
    """The state of a partition directory, by the suffix of its name."""

    LIVE = ""
    DELETE = DELETE_DIR_SUFFIX
    FUTURE = FUTURE_DIR_SUFFIX
    STRAY = STRAY_DIR_SUFFIX


class PartitionDir(NamedTuple):
    """A partition directory's name, read back."""

    topic_partition: TopicPartition
    state: DirState


class SegmentFile(NamedTuple):
    """A segment file's name, read back: `00000000000000000042.log.swap` is (42, .log, .swap)."""

    base_offset: int
    suffix: str
    state: str


def join(directory: str, name: str) -> str:
    """The path of `name` inside `directory`."""
    return f"{directory}/{name}"


def file_name(path: str) -> str:
    """The last component of a path."""
    return path.rsplit("/", 1)[-1]


def parent_dir(path: str) -> str:
    """The directory that holds `path`."""
    head, slash, _ = path.rpartition("/")
    return head or slash or "."


def parse_offset(text: str) -> int | None:
    """The offset that a file is named by: 20 digits, a number of 64 bits. None for other text."""
    if len(text) != _DIGITS or not (text.isascii() and text.isdigit()):
        return None
    offset = int(text)
    return offset if offset <= MAX_OFFSET else None


def segment_file(base_offset: int, suffix: str, state: str = "") -> str:
    """Name of a segment's file; see `SegmentFile` for the parts."""
    return f"{base_offset:0{_DIGITS}d}{suffix}{state}"


def log_file(directory: str, base_offset: int, state: str = "") -> str:
    """Path of the segment's record file."""
    return join(directory, segment_file(base_offset, LOG_SUFFIX, state))


def index_file(directory: str, base_offset: int, state: str = "") -> str:
    """Path of the segment's offset index."""
    return join(directory, segment_file(base_offset, INDEX_SUFFIX, state))


def time_index_file(directory: str, base_offset: int, state: str = "") -> str:
    """Path of the segment's time index."""
    return join(directory, segment_file(base_offset, TIME_INDEX_SUFFIX, state))


def txn_index_file(directory: str, base_offset: int, state: str = "") -> str:
    """Path of the segment's index of aborted transactions."""
    return join(directory, segment_file(base_offset, TXN_INDEX_SUFFIX, state))


def snapshot_file(directory: str, offset: int, state: str = "") -> str:
    """Path of the producer snapshot that covers batches below `offset`."""
    return join(directory, segment_file(offset, SNAPSHOT_SUFFIX, state))


def temporary_file(path: str, unique: int) -> str:
    """Path of the temporary file for the next content of the file at `path`."""
    return f"{path}.{unique:016x}{TEMPORARY_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Whether `name` is a temporary file of a replacement, this broker's or Kafka's."""
    if not name.endswith(TEMPORARY_SUFFIX):
        return False
    if name[_DIGITS:].startswith(INDEX_SUFFIXES) and parse_offset(name[:_DIGITS]) is not None:
        return True
    return name.startswith(_REPLACED) or SNAPSHOT_SUFFIX in name


def parse_segment_file(name: str) -> SegmentFile | None:
    """Parse a file name; None when it is not one of a segment's files."""
    state = ""
    for candidate in STATE_SUFFIXES:
        if name.endswith(candidate):
            state = candidate
            name = name[: -len(candidate)]
            break
    digits, dot, rest = name.partition(".")
    suffix = dot + rest
    base_offset = parse_offset(digits)
    if suffix not in SUFFIXES or base_offset is None:
        return None
    return SegmentFile(base_offset, suffix, state)


def partition_dir_name(topic_partition: TopicPartition) -> str:
    """`topic-partition`."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def state_dir_name(topic_partition: TopicPartition, state: DirState, unique: str) -> str:
    """Name of a directory in `state`; `unique` is 32 hexadecimal digits.

    The topic is cut where the whole name would pass 255 characters, as in Kafka, so the topic
    cannot always be parsed from such a name.
    """
    suffix = f"-{topic_partition.partition}.{unique}{state.value}"
    return topic_partition.topic[: MAX_NAME_LENGTH - len(suffix)] + suffix


def parse_partition_dir(name: str) -> PartitionDir | None:
    """Parse a directory name, split at the *last* dash (topics may contain dashes, dots).

    None when the name is not one of a partition: no dash, an empty topic, a partition that is no
    number of Kafka's (it has 32 bits), or a state suffix without its 32 hexadecimal digits.
    """
    state = DirState.LIVE
    for candidate in (DirState.DELETE, DirState.FUTURE, DirState.STRAY):
        if name.endswith(candidate.value):
            stem = name[: -len(candidate.value)]
            if len(stem) > _UNIQUE_LENGTH and _is_unique(stem[-_UNIQUE_LENGTH:]):
                state, name = candidate, stem[:-_UNIQUE_LENGTH]
                break
            return None
    topic, _, partition = name.rpartition("-")
    if not topic or not (partition.isascii() and partition.isdigit()):
        return None
    if int(partition) > MAX_PARTITION:
        return None
    return PartitionDir(TopicPartition(topic, int(partition)), state)


def _is_unique(text: str) -> bool:
    return text[0] == "." and all(digit in "0123456789abcdef" for digit in text[1:])
