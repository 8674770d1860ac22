"""Decisions that need a producer id, although the block of ids may be used up."""

from collections.abc import Callable

from broker.cluster.producer_ids import ProducerIdAllocator, ProducerIdsUsedUp


async def decide_with_ids(producer_ids: ProducerIdAllocator, decide: Callable[[], None]) -> None:
    """Call `decide`; if ids are used up it has changed nothing: record a block and call it again.

    Raises KafkaError.
    """
    try:
        decide()
    except ProducerIdsUsedUp:
        await producer_ids.make_ready()
        decide()
