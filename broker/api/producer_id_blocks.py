"""Answers that need a producer id, although the block of ids may be used up.

While ids are left, the answer is made at once. Otherwise the attempt has changed nothing: the next
block is recorded, then the answer is made again.
"""

from collections.abc import Callable
from typing import Any

from broker.cluster.producer_ids import ProducerIdAllocator, ProducerIdsUsedUp
from broker.request import Pending
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Signal


async def answer_with_ids(
    producer_ids: ProducerIdAllocator,
    answer: Callable[[], Any],
    refused: Callable[[ErrorCode], Any],
) -> Any:
    """What `answer` returns; `refused` if it raises KafkaError."""
    try:
        try:
            reply = answer()
        except ProducerIdsUsedUp:
            await producer_ids.make_ready()
            reply = answer()
    except KafkaError as error:
        return refused(error.code)
    if isinstance(reply, Pending):
        done: Signal[Any] = Signal()
        reply.notify(done.fire)
        await done.parked()
        reply = reply.reply
    return reply
