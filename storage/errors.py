"""The errors of storage, sorted by who has to act.

* `StorageError`: the disk failed. The log directory goes offline; clients get
  KAFKA_STORAGE_ERROR (S-REC-11).
* `OutOfResources`: the process has no descriptor or memory left. Clients get the same code, tasks
  try again, and the directory stays in service.
* `Corrupt…`, `CheckpointError`: a file does not hold what its format promises. The loader rebuilds
  or ignores it; it never reaches a client.
* `IndexInDoubt`: an index contradicts its log, or was not compared with it yet; a job rebuilds it.
  Until then clients get `BeingRepaired`, or no records.
* `StaleGeneration`: the segments changed while a job ran; whoever began it drops its result.
* `Inconsistent…`, `DirectoryLocked`: the broker must not start (S-START-6, S-REC-7).
* The other `KafkaError`s: a request was refused; the code goes on the wire.

Any room may catch these; only storage raises them.
"""

import errno
from enum import StrEnum
from typing import Final

from protocol.errors import ErrorCode, KafkaError

_SHORTAGES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


def is_shortage(error: OSError) -> bool:
    """Whether the error is a passing lack of descriptors or memory, and no failure of a disk."""
    return error.errno in _SHORTAGES


class StorageError(KafkaError):
    """Reading or writing below `path` failed; its log directory can no longer be trusted.

    Kafka's KafkaStorageException. `cause` is the OSError (or a sentence where there is none).
    """

    def __init__(self, path: str, cause: OSError | str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {cause}")
        self.path = path
        self.cause = cause


class OutOfResources(StorageError):
    """The process has no descriptor or memory left to work below `path`; no disk failed.

    The operation was not done and may be tried again.
    """

    def __init__(self, path: str, cause: OSError) -> None:
        super().__init__(path, cause)


def storage_error(path: str, cause: OSError) -> StorageError:
    """The StorageError, or OutOfResources, that stands for an OSError below `path`."""
    return (OutOfResources if is_shortage(cause) else StorageError)(path, cause)


class BeingRepaired(KafkaError):
    """An index was found damaged, or must be compared with its log first; the client may retry.

    The directory stays in service. OFFSET_NOT_AVAILABLE is a code after which clients retry; a
    fetch is not answered with it but gets no records and waits for them.
    """

    def __init__(self, path: str) -> None:
        super().__init__(ErrorCode.OFFSET_NOT_AVAILABLE, f"{path} is being rebuilt from its log.")


class OffsetOutOfRange(KafkaError):
    """A read or truncation outside [start, end]; its fields go into the response."""

    def __init__(self, offset: int, *, start: int, high_watermark: int, end: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is not between log start offset {start} and log end offset {end}.",
        )
        self.offset = offset
        self.start = start
        self.high_watermark = high_watermark
        self.end = end


class NoMoreOffsets(KafkaError):
    """A batch does not fit below the greatest offset of 64 bits.

    Such a log began with a segment or a checkpoint of a foreign name or number. (Kafka's log end
    offset becomes negative.)
    """

    def __init__(self, partition: str, end: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} ends at offset {end} and has no offsets left for this batch.",
        )


class OutOfOrderSequence(KafkaError):
    """A batch's first sequence does not follow the producer's last one (S-IDEM-1)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class InvalidProducerEpoch(KafkaError):
    """A batch or marker of a fenced producer incarnation (S-IDEM-1)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_PRODUCER_EPOCH, message)


class InvalidTransactionState(KafkaError):
    """A non-transactional batch of a producer whose transaction is open (S-TXN-1)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_TXN_STATE, message)


class TransactionCoordinatorFenced(KafkaError):
    """A transaction marker written by a deposed coordinator (S-TXN-2)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)


class CheckpointError(Exception):
    """A checkpoint file is malformed. Kafka raises IOException here; the reader decides (S-FL-3).

    `line` counts from 1; 0 means the file as a whole.
    """

    def __init__(self, path: str, line: int, reason: str) -> None:
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class CorruptIndex(Exception):
    """An index contradicts itself or its segment: rebuild it from the log (S-IDX-6)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class IndexKind(StrEnum):
    """The three indexes of a segment."""

    OFFSET = "offset"
    TIME = "time"
    TRANSACTION = "transaction"


class IndexInDoubt(Exception):
    """An index contradicts its log, or was not compared with it yet: nobody may rely on it.

    `base_offset` is its segment's.
    """

    def __init__(self, path: str, base_offset: int, kind: IndexKind, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.base_offset = base_offset
        self.kind = kind
        self.reason = reason

    def fresh(self) -> "IndexInDoubt":
        """The same without a traceback, to be kept or raised again: tracebacks hold frames."""
        return IndexInDoubt(self.path, self.base_offset, self.kind, self.reason)


class CorruptSnapshot(Exception):
    """A producer snapshot is unreadable: delete it and use an older one (S-REC-5)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class IndexOffsetOverflow(Exception):
    """An offset is too far from the segment's base for a 4-byte relative offset (S-IDX-4)."""

    def __init__(self, path: str, base_offset: int, offset: int) -> None:
        super().__init__(f"{path}: offset {offset} does not fit a segment based at {base_offset}")
        self.path = path
        self.base_offset = base_offset
        self.offset = offset


class InvalidIndexAppend(Exception):
    """An entry to append does not follow the index's last one: a bug or a damaged log."""


class StaleGeneration(Exception):
    """The segments that a job worked on were cut, replaced, moved or deleted meanwhile.

    Whoever began the job drops its result.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the segments have changed since they were read")
        self.path = path


class InconsistentBrokerId(Exception):
    """`meta.properties` names another broker id than the configuration or a sibling directory."""


class InconsistentClusterId(Exception):
    """`meta.properties` names another cluster."""


class InconsistentMetaProperties(Exception):
    """`meta.properties` is unreadable or contradicts itself."""


class DirectoryLocked(Exception):
    """Another process owns the log directory (S-REC-7)."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Failed to acquire lock on file .lock in {path}. A Kafka instance in another process "
            "or thread is using this directory."
        )
        self.path = path
