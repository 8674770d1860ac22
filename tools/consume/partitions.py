"""Reads ranges of partitions without a group."""

from collections.abc import Iterator, Mapping
from typing import Any

from tools.consume.bounds import Range
from tools.consume.polling import Polling
from tools.log_ends import Place


def read_ranges(
    consumer: Any, ranges: Mapping[Place, Range], polling: Polling
) -> Iterator[list[Any]]:
    """Yield batches of messages, which may be empty, until every range is read.

    The last offset of a range may hold no record (a transaction's marker, a record that was
    compacted away). So a range is read once a record at its last offset or later, or the end of the
    log, was seen. Raises CommandError.
    """
    from confluent_kafka import TopicPartition

    left = {place: wanted for place, wanted in ranges.items() if not wanted.is_empty}
    consumer.assign([TopicPartition(*place, wanted.start) for place, wanted in left.items()])
    polling.ends.clear()
    batches = polling.batches() if left else iter(())
    for messages in batches:
        before = list(left)
        yield _within(messages, left)
        for place, wanted in list(left.items()):
            if wanted.stop is not None and polling.ends.get(place, -1) >= wanted.stop:
                del left[place]
        if not left:
            return
        read = [TopicPartition(*place) for place in before if place not in left]
        if read:
            # Not `pause`: librdkafka sometimes keeps a pause beyond the next `assign`.
            consumer.incremental_unassign(read)


def _within(messages: list[Any], left: dict[Place, Range]) -> list[Any]:
    """Return the messages of the ranges that are left; drop the ranges that these end."""
    if all(wanted.stop is None for wanted in left.values()):
        return messages
    kept = []
    for message in messages:
        place = (message.topic(), message.partition())
        wanted = left.get(place)
        if wanted is None:
            continue
        offset = message.offset()
        if wanted.stop is None or offset < wanted.stop:
            kept.append(message)
        if wanted.stop is not None and offset >= wanted.stop - 1:
            del left[place]
    return kept
