"""Reads as a member of a group, and commits the offsets of records that were printed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tools.consume.polling import Polling
from tools.log_ends import Place


class Member:
    """One consumer in a group. With `ends`, it stops when its partitions are read up to these."""

    def __init__(
        self,
        consumer: Any,
        topics: Sequence[str],
        polling: Polling,
        ends: Mapping[Place, int] | None,
    ) -> None:
        self._consumer: Final = consumer
        self._polling: Final = polling
        self._ends: Final = ends
        self._joined = False
        self._assigned: set[Place] = set()
        self._reached: set[Place] = set()
        consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_away, on_lost=self._on_away
        )

    def read(self) -> Iterator[list[Any]]:
        """Yield batches of messages, which may be empty. Raises CommandError."""
        for messages in self._polling.batches():
            yield messages
            if self._ends is not None and self._is_done(messages, self._ends):
                return

    def printed(self, messages: Iterable[Any]) -> None:
        """Store the offsets behind these messages for the next commit."""
        from confluent_kafka import TopicPartition

        following: dict[Place, int] = {}
        for message in messages:
            place = (message.topic(), message.partition())
            if place in self._assigned:
                following[place] = message.offset() + 1
        if following:
            self._consumer.store_offsets(
                offsets=[TopicPartition(*place, offset) for place, offset in following.items()]
            )

    def _is_done(self, messages: Iterable[Any], ends: Mapping[Place, int]) -> bool:
        for message in messages:
            place = (message.topic(), message.partition())
            if message.offset() >= ends.get(place, 0) - 1:
                self._reached.add(place)
        self._reached |= {
            place for place, end in self._polling.ends.items() if end >= ends.get(place, 0)
        }
        return self._joined and self._assigned <= self._reached

    def _on_assign(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        self._joined = True
        self._assigned |= {(p.topic, p.partition) for p in partitions}

    def _on_away(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        gone = {(p.topic, p.partition) for p in partitions}
        self._assigned -= gone
        self._reached -= gone
        for place in gone:
            self._polling.ends.pop(place, None)
