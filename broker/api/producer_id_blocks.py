"""Answers that need a producer id, when the block at hand may be used up.

An answer is given at once as long as there are ids; when there are none, nothing has happened yet:
a block is recorded first, in a coroutine, and the answer tried again.
"""

from collections.abc import Callable
from typing import TypeVar

from broker.cluster.producer_ids import ProducerIdAllocator, ProducerIdsUsedUp
from broker.request import Work
from protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")


def answer_with_ids(
    producer_ids: ProducerIdAllocator,
    answer: Callable[[], T],
    refused: Callable[[ErrorCode], T],
) -> T | Work[T]:
    """What `answer` returns, or `refused` when it raises KafkaError; or a coroutine of the same."""
    try:
        return answer()
    except ProducerIdsUsedUp:
        return _answer_after_refill(producer_ids, answer, refused)
    except KafkaError as error:
        return refused(error.code)


async def _answer_after_refill(
    producer_ids: ProducerIdAllocator,
    answer: Callable[[], T],
    refused: Callable[[ErrorCode], T],
) -> T:
    try:
        await producer_ids.make_ready()
        return answer()
    except KafkaError as error:
        return refused(error.code)
