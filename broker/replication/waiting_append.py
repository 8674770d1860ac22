"""An append that must wait: for its batch to be opened, for its turn, or for a thread.

`Partition.wait_append_as_leader` makes and runs it; other appends do not come here. The rules are
those of `broker.replication.partition`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import trio

from protocol.errors import ErrorCode, KafkaError
from protocol.records.effort import EffortSpent
from storage.log.results import AppendInfo, AppendOrigin

if TYPE_CHECKING:
    from broker.replication.batch_opening import BatchOpener
    from broker.world.workers import Workers
    from protocol.types import TopicPartition
    from storage.log.log import Log
    from storage.log.opening import Opened

ALL_IN_SYNC: Final = -1
"""Produce's `acks=all`."""
_LOG_IS_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR)


class Target(Protocol):
    """The part of `Partition` that is used here."""

    topic_partition: "TopicPartition"
    log: "Log"
    leader_epoch: int
    unavailable: ErrorCode
    threaded_append_bytes: int
    appending: int
    """Appends that hold or wait for the lock."""
    opener: "BatchOpener"
    workers: "Workers"

    def must_wait(self, size: int) -> bool:
        """Whether an append of `size` bytes must queue or goes to a thread."""
        ...

    def append_lock(self) -> trio.Lock:
        """The lock that appends queue on."""
        ...

    def require_min_isr(self) -> None:
        """Raises KafkaError NOT_ENOUGH_REPLICAS."""
        ...

    def append_as_leader_nowait(
        self,
        records: memoryview | bytes,
        *,
        required_acks: int,
        origin: AppendOrigin,
        request_version: int,
        opened: "Opened | None",
    ) -> AppendInfo:
        """Append now."""
        ...

    def appended(self, info: AppendInfo) -> None:
        """A batch was appended to the log."""
        ...


class WaitingAppend:
    """One batch that waits to be appended to a partition's log."""

    __slots__ = (
        "_admit",
        "_opened",
        "_origin",
        "_partition",
        "_records",
        "_request_version",
        "_required_acks",
    )

    def __init__(
        self,
        partition: Target,
        records: memoryview | bytes,
        *,
        required_acks: int,
        origin: AppendOrigin,
        request_version: int,
        admit: Callable[[], None] | None,
    ) -> None:
        """`admit` is called when its turn comes, and may raise KafkaError."""
        self._partition = partition
        self._records = records
        self._required_acks = required_acks
        self._origin = origin
        self._request_version = request_version
        self._admit = admit
        self._opened: Opened | None = None

    async def run(self, *, spent: bool, heavy: bool | None) -> AppendInfo:
        """Append it; see `Partition.wait_append_as_leader`. Raises as that does."""
        partition, records = self._partition, self._records
        while True:
            if spent:
                self._opened = await self._open(heavy)
                if not partition.must_wait(len(records)):
                    self._ask()
                    return partition.append_as_leader_nowait(
                        records,
                        required_acks=self._required_acks,
                        origin=self._origin,
                        request_version=self._request_version,
                        opened=self._opened,
                    )
            partition.appending += 1
            try:
                async with partition.append_lock():
                    # From here on the append is finished, even if its client is gone.
                    with trio.CancelScope(shield=True):
                        self._ask()
                        return await self._append_in_turn()
            except EffortSpent:
                if self._opened is not None:
                    raise  # a bug
                spent = True
            finally:
                partition.appending -= 1

    def _ask(self) -> None:
        if self._admit is not None:
            self._admit()

    async def _open(self, heavy: bool | None) -> "Opened | None":
        opener = self._partition.opener
        opening = self._partition.log.appender.opening(
            self._records, origin=self._origin, request_version=self._request_version
        )
        if opening is None:
            return None
        if not heavy:
            try:
                return await opener.open(opening)
            except EffortSpent:
                if heavy is not None:
                    raise
        return await opener.open_heavy(opening)

    async def _append_in_turn(self) -> AppendInfo:
        partition = self._partition
        self._expect_served()
        if self._required_acks == ALL_IN_SYNC:
            partition.require_min_isr()
        log = partition.log
        pending = log.appender.begin_append(
            self._records,
            leader_epoch=partition.leader_epoch,
            origin=self._origin,
            request_version=self._request_version,
            opened=self._opened,
            bounded=True,
        )
        if pending.size < partition.threaded_append_bytes:
            pending.write()
        else:
            await partition.workers.in_thread(pending.write)
        if partition.unavailable in _LOG_IS_GONE:
            # The partition was deleted, or its disk failed, while the thread was writing: do not
            # complete the append, which would touch files that are gone.
            self._expect_served()
        info = log.appender.complete_append(pending)
        partition.appended(info)
        return info

    def _expect_served(self) -> None:
        partition = self._partition
        if partition.unavailable:
            raise KafkaError(
                partition.unavailable, f"{partition.topic_partition} is not served here."
            )
