"""A produce request with acks=all that waits for the high watermark (S-APP-8).

Each partition that was appended to waits until the watermark passes its last offset. A partition
is settled when

  A. this broker no longer leads it, or its disk failed: with that error;
  B. the watermark passed, and enough replicas are in sync: with success;
  C. the watermark passed, but the ISR has shrunk below the minimum: with
     NOT_ENOUGH_REPLICAS_AFTER_APPEND.

The request is answered when all are settled, or when `timeout.ms` is over: partitions that are not
settled then get REQUEST_TIMED_OUT, and the data stays.

Only parked for partitions with followers in sync; made by `broker.api.produce`.
After `kafka.server.DelayedProduce`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from broker.replication.partition import Partition
from broker.replication.purgatory import DelayedOperation
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceResponse


@dataclass(slots=True)
class Awaited:
    """One partition of the request, until it is settled."""

    partition: Partition
    required_offset: int
    """The watermark must reach this: the last appended offset plus one."""
    reply: PartitionProduceResponse
    """The `PartitionProduceResponse` that will carry the outcome."""


class DelayedProduce(DelayedOperation):
    """A parked produce: ends when all of its partitions are settled, or by timeout."""

    __slots__ = ("_answer", "_waiting")

    def __init__(self, waiting: list[Awaited], answer: Callable[[], object]) -> None:
        super().__init__()
        self._waiting = waiting
        self._answer = answer

    def try_complete(self, key: Hashable | None = None) -> bool:
        """Settle what can be settled (cases A to C); True when nothing is left.

        Its owner calls `leave` when the request goes on.
        """
        left = []
        for awaited in self._waiting:
            settled, code = awaited.partition.reached(awaited.required_offset)
            if settled:
                awaited.reply.error_code = code
            else:
                left.append(awaited)
        self._waiting = left
        return self.announce() if not left else False

    def on_expire(self) -> None:
        """Answer the partitions that are not settled with REQUEST_TIMED_OUT."""
        for awaited in self._waiting:
            awaited.reply.error_code = ErrorCode.REQUEST_TIMED_OUT

    def on_complete(self) -> None:
        """Send the answer."""
        self._answer()
