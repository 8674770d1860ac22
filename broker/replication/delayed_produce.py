"""A request that waits for the followers: a produce with acks=all, or a DeleteRecords.

Each partition of a produce waits until the high watermark passes its last offset (S-APP-8). It is
settled when

  A. this broker no longer leads it, or its disk failed: with that error;
  B. the watermark passed, and enough replicas are in sync: with success;
  C. the watermark passed, but the ISR has shrunk below the minimum: with
     NOT_ENOUGH_REPLICAS_AFTER_APPEND.

Each partition of a DeleteRecords waits for the low watermark, the least log start of all live
replicas (S-RET-6): case A, or the watermark has reached the offset.

The request is answered when all are settled, or when `timeout.ms` is over: partitions that are not
settled then get REQUEST_TIMED_OUT. Records that were appended stay, and records that were deleted
are invisible on the leader.

Made by `broker.api.produce` and `broker.api.delete_records`, for partitions with other replicas
only; both are parked in one purgatory, because the same fetches of followers end them. After
`kafka.server.DelayedProduce` and `DelayedDeleteRecords`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from broker.replication.partition import Partition
from broker.replication.purgatory import DelayedOperation
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsPartitionResult
from protocol.messages.produce import PartitionProduceResponse


@dataclass(slots=True)
class Awaited:
    """One partition of a produce, until it is settled."""

    partition: Partition
    required_offset: int
    """The high watermark must reach this: the last appended offset plus one."""
    reply: PartitionProduceResponse
    """`settle` writes the outcome into it."""

    def settle(self) -> bool:
        """Write the outcome into the reply, in cases A to C; return whether it is settled."""
        settled, code = self.partition.reached(self.required_offset)
        if settled:
            self.reply.error_code = code
        return settled


@dataclass(slots=True)
class AwaitedDeletion:
    """One partition of a DeleteRecords, until it is settled."""

    partition: Partition
    offset: int
    """The low watermark must reach this."""
    reply: DeleteRecordsPartitionResult

    def settle(self) -> bool:
        """Write the low watermark, or case A, into the reply; return whether it is settled."""
        partition, reply = self.partition, self.reply
        if partition.unavailable:
            reply.error_code, reply.low_watermark = partition.unavailable, -1
            return True
        reply.low_watermark = partition.low_watermark
        return reply.low_watermark >= self.offset


class DelayedProduce(DelayedOperation):
    """A parked request: ends when all of its partitions are settled, or by timeout."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: Sequence[Awaited | AwaitedDeletion]) -> None:
        super().__init__()
        self._waiting = waiting

    def is_complete(self, key: Hashable | None = None) -> bool:
        """Settle what can be settled; return whether nothing is left."""
        self._waiting = [awaited for awaited in self._waiting if not awaited.settle()]
        return not self._waiting

    def on_expire(self) -> None:
        """Answer the partitions that are not settled with REQUEST_TIMED_OUT."""
        for awaited in self._waiting:
            awaited.reply.error_code = ErrorCode.REQUEST_TIMED_OUT
