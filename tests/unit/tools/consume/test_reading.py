"""Ranges read from a client that is a fake: gaps, ends, deleted topics, brokers that went away."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.support.client_messages import FakeMessage
from tools.consume.bounds import Range
from tools.consume.last import last_records
from tools.consume.partitions import read_ranges
from tools.consume.polling import Polling
from tools.errors import CommandError
from tools.log_ends import Place
from tools.presence import AWAY_S, Presence
from tools.records.record import Record

A, B = ("t", 0), ("t", 1)


class FakeConsumer:
    """Logs with gaps: offsets that hold a record, and the end."""

    def __init__(self, logs: Mapping[Place, tuple[list[int], int | None]]) -> None:
        self.logs = logs
        self.queue: Iterator[FakeMessage] = iter(())
        self.topics = {"t"}
        self.read = 0

    def assign(self, partitions: Any) -> None:
        self.queue = iter([m for p in partitions for m in self._messages(p)])

    def _messages(self, partition: Any) -> Iterator[FakeMessage]:
        place = (partition.topic, partition.partition)
        offsets, end = self.logs[place]
        yield from (
            FakeMessage(place=place, its_offset=o) for o in offsets if o >= partition.offset
        )
        if end is not None:
            yield FakeMessage(place=place, its_offset=end, code=KafkaError._PARTITION_EOF)

    def poll(self, timeout: float) -> FakeMessage | None:
        self.read += 1
        assert self.read < 100, "read on and on"
        return next(self.queue, None)

    def consume(self, number: int, timeout: float) -> list[FakeMessage]:
        return []

    def incremental_unassign(self, partitions: Any) -> None:
        pass

    def list_topics(self, timeout: float) -> Any:
        return type("Metadata", (), {"topics": self.topics})


def polling(consumer: FakeConsumer, probe: Callable[[Any], None] = lambda _settings: None) -> Any:
    clock = map(float, count())
    ticks: Callable[[], float] = lambda: next(clock)  # noqa: E731
    return Polling(consumer, ["t"], Presence({}, probe=probe, clock=ticks), ticks)


def read(consumer: FakeConsumer, ranges: Mapping[Place, Range]) -> list[tuple[int, int]]:
    batches = read_ranges(consumer, ranges, polling(consumer))
    return [(m.partition(), m.offset()) for batch in batches for m in batch]


def test_ranges_end_at_records_at_gaps_and_at_the_end_of_the_log() -> None:
    consumer = FakeConsumer({A: ([0, 1, 5, 6], 9), B: ([0, 1], 4)})
    assert read(consumer, {A: Range(1, 6)}) == [(0, 1), (0, 5)]
    assert read(consumer, {A: Range(0, 4)}) == [(0, 0), (0, 1)]  # 4 is no record, 5 is behind it
    assert read(consumer, {A: Range(0, 9)}) == [(0, 0), (0, 1), (0, 5), (0, 6)]  # markers at 7, 8
    assert read(consumer, {A: Range(6, 7), B: Range(1, 4)}) == [(0, 6), (1, 1)]


def test_the_last_record_of_a_range_ends_it_at_once() -> None:
    consumer = FakeConsumer({A: ([0, 1], None)})
    assert read(consumer, {A: Range(0, 2)}) == [(0, 0), (0, 1)]
    assert consumer.read == 2


def test_nothing_is_asked_for_where_all_ranges_are_empty() -> None:
    consumer = FakeConsumer({A: ([0], 1)})
    assert read(consumer, {A: Range(1, 1)}) == []
    assert consumer.read == 0


def test_the_last_records_are_found_behind_markers_and_over_partitions() -> None:
    consumer = FakeConsumer({A: ([0, 1, 2, 3], 60), B: ([2], 4)})

    def last(number: int, chosen: Callable[[Record], bool] = lambda record: True) -> Any:
        found = last_records(
            lambda ranges: read_ranges(consumer, ranges, polling(consumer)),
            {A: Range(0, 60), B: Range(0, 4)},
            number,
            chosen,
        )
        return [(r.partition, r.offset) for r in found]

    assert last(1) == [(0, 3)]
    assert last(3) == [(0, 2), (1, 2), (0, 3)]
    assert len(last(99)) == 5
    assert last(2, lambda record: record.offset != 3) == [(0, 2), (1, 2)]


def test_a_topic_that_is_deleted_ends_it() -> None:
    consumer = FakeConsumer({A: ([0], 1)})
    batches = read_ranges(consumer, {A: Range(0, None)}, polling(consumer))
    assert len(next(batches)) == 1
    consumer.topics = set()
    with pytest.raises(CommandError, match="topic t is gone: it was deleted"):
        for _ in range(10):
            next(batches)


def test_what_the_client_says_of_a_topic_ends_it_too() -> None:
    consumer = FakeConsumer({})
    consumer.queue = iter([FakeMessage(code=KafkaError.UNKNOWN_TOPIC_OR_PART)])
    with pytest.raises(CommandError, match="topic t is gone"):
        next(polling(consumer).batches())


def test_a_broker_that_is_away_for_long_ends_it_and_a_restart_does_not() -> None:
    now, there = [0.0], [False]

    def probe(_settings: Any) -> None:
        if not there[0]:
            raise CommandError("cannot connect to x:1: Connection refused. Is a broker running?")

    presence = Presence({}, probe=probe, clock=lambda: now[0])
    presence.check()  # nobody doubts
    presence.doubt()
    presence.check()
    now[0], there[0] = AWAY_S * 2, True
    presence.check()
    there[0] = False
    presence.check()  # nobody doubts any more
    presence.doubt()
    presence.check()
    now[0] += AWAY_S
    with pytest.raises(CommandError) as caught:
        presence.check()
    assert str(caught.value) == ("the broker went away: cannot connect to x:1: Connection refused")
