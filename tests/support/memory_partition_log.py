"""A `PartitionWriter` in memory: the log of a coordinator's topic, without replicas or disk."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import read_header, set_place
from protocol.records.record import Record, iter_records
from protocol.types import TopicPartition
from storage.waits import Signal


class MemoryPartitionLog:
    """Appends at once; a test can make it fail, or hold writes back until `release`."""

    def __init__(self) -> None:
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.led: dict[TopicPartition, int] | None = None
        """The led partitions with their epochs; None means all, in epoch 0."""
        self.fail_with = ErrorCode.NONE
        self.end_with = ErrorCode.NONE
        """The code of a batch that is appended and neither refused nor held back."""
        self.hold = False
        self.reads = 0
        self._ends: dict[TopicPartition, int] = {}
        self._held: list[Signal[ErrorCode]] = []

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        return 0 if self.led is None else self.led.get(tp)

    def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        if self.leader_epoch(tp) is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return 0, self._ends.get(tp, 0)

    def append(self, tp: TopicPartition, batch: bytes) -> tuple[int, Signal[ErrorCode]]:
        if self.fail_with:
            raise KafkaError(self.fail_with)
        buffer = bytearray(batch)
        header = read_header(buffer)
        first = self._ends.get(tp, 0)
        set_place(buffer, header, first, 0)
        self._ends[tp] = first + header.record_count
        self.batches.setdefault(tp, []).append(bytes(buffer))
        durable: Signal[ErrorCode] = Signal()
        if self.hold:
            self._held.append(durable)
        else:
            durable.fire(self.end_with)
        return first, durable

    def uncompacted(self, tp: TopicPartition) -> AbstractContextManager[None]:
        return nullcontext()

    def drop(self) -> None:
        """Delete all topics; created again, they are empty."""
        self.batches.clear()
        self._ends.clear()

    def release(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Let the writes that were held back succeed or fail."""
        held, self._held = self._held, []
        for durable in held:
            durable.fire(code)

    def release_one(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Let the oldest write that was held back succeed or fail."""
        self._held.pop(0).fire(code)

    def after_crash(self, tp: TopicPartition, kept: int) -> "MemoryPartitionLog":
        """Return the log of a new process: of the batches held back in `tp`, `kept` are in it."""
        log = MemoryPartitionLog()
        log.led = self.led
        log.batches = {one: list(batches) for one, batches in self.batches.items()}
        batches = log.batches.get(tp, [])
        del batches[len(batches) - max(len(self._held) - kept, 0) :]
        if not batches:
            log.batches.pop(tp, None)
        log._ends = {
            one: read_header(batches[-1]).next_offset for one, batches in log.batches.items()
        }
        return log

    async def read(self, tp: TopicPartition, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        found = b""
        for batch in self.batches[tp]:
            if read_header(batch).next_offset > offset:
                if found and len(found) + len(batch) > max_bytes:
                    return found + batch[: max_bytes - len(found)]
                found += batch
        return found

    def records(self, tp: TopicPartition) -> Iterator[Record]:
        """Yield all records of one partition."""
        for batch in self.batches.get(tp, []):
            yield from iter_records(batch)

    def all_records(self) -> list[Record]:
        """Return all records of all partitions."""
        return [record for tp in self.batches for record in self.records(tp)]
