"""Answers that need a producer id, when the block at hand may be used up.

An answer is given at once as long as there are ids; when there are none, nothing has happened yet:
a block is recorded first, in a coroutine, and the answer tried again.
"""

from collections.abc import Callable
from typing import Any

from broker.cluster.producer_ids import ProducerIdAllocator, ProducerIdsUsedUp
from protocol.errors import ErrorCode, KafkaError


def answer_with_ids(
    producer_ids: ProducerIdAllocator,
    answer: Callable[[], Any],
    refused: Callable[[ErrorCode], Any],
) -> Any:
    """What `answer` returns, or `refused` when it raises KafkaError; or a coroutine of the same."""
    try:
        return answer()
    except ProducerIdsUsedUp:
        return _answer_after_refill(producer_ids, answer, refused)
    except KafkaError as error:
        return refused(error.code)


async def _answer_after_refill(
    producer_ids: ProducerIdAllocator,
    answer: Callable[[], Any],
    refused: Callable[[ErrorCode], Any],
) -> Any:
    try:
        await producer_ids.make_ready()
        return answer()
    except KafkaError as error:
        return refused(error.code)
