"""Answers that need a producer id, although the block of ids may be used up.

While ids are left, the answer is made at once. Otherwise the attempt has changed nothing: a
coroutine records the next block, then makes the answer again.
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
    """What `answer` returns, `refused` if it raises KafkaError, or a coroutine for one of them."""
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
