"""Times one record after the other, from `produce` until a consumer in this process has it."""

import time
from collections.abc import Callable
from typing import Any, Final

from tools.errors import CommandError
from tools.perf.measure import Measure, Told
from tools.perf.producing import PAYLOADS, payloads
from tools.perf.wanted import Wanted
from tools.presence import Presence

COME_S: Final = 30.0
"""The longest time that one record may take."""
WARM_UP: Final = 10
"""Records that are not counted: they open connections and look up metadata."""
_SLICE_S: Final = 0.5


def measure_latency(
    producer: Any,
    consumer: Any,
    presence: Presence,
    measure_from: Callable[[], Measure],
    wanted: Wanted,
    told: Told,
) -> Measure:
    """Measure up to the limits of `wanted`. Raises CommandError if a record does not arrive."""
    topic, records, rate = wanted.topic, wanted.records, wanted.rate
    partition = _assign_end(producer, consumer, topic)
    values = payloads(wanted.size)
    for number in range(WARM_UP):
        _trip(producer, consumer, presence, topic, partition, values[number])
    measure = measure_from()
    sent = 0
    while not measure.interrupted and (records is None or sent < records):
        now = time.monotonic()
        if wanted.seconds is not None and now - measure.began >= wanted.seconds:
            break
        if rate is not None and (wait := measure.began + sent / rate - now) > 0:
            time.sleep(min(wait, _SLICE_S))
            if wait > _SLICE_S:
                continue
        took = _trip(producer, consumer, presence, topic, partition, values[sent % PAYLOADS])
        measure.note_ms(took * 1000)
        measure.note(1, wanted.size)
        sent += 1
        if (interval := measure.tick(time.monotonic())) is not None:
            told(interval)
    return measure


def _assign_end(producer: Any, consumer: Any, topic: str) -> int:
    """Send a record and assign its partition from there on; return it. Raises CommandError.

    The record makes the topic, if the broker creates topics automatically.
    """
    from confluent_kafka import TopicPartition

    where: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        where.append(error if error is not None else (message.partition(), message.offset()))

    producer.produce(topic, b"", on_delivery=delivered)
    producer.flush(COME_S)
    if not where or not isinstance(where[0], tuple):
        reason = where[0].str() if where else "no answer"
        raise CommandError(f"{topic} cannot be written to: {reason}")
    partition, offset = where[0]
    consumer.assign([TopicPartition(topic, partition, offset + 1)])
    return int(partition)


def _trip(
    producer: Any, consumer: Any, presence: Presence, topic: str, partition: int, value: bytes
) -> float:
    began = time.perf_counter()
    producer.produce(topic, value, partition=partition)
    producer.poll(0)
    while time.perf_counter() - began < COME_S:
        message = consumer.poll(_SLICE_S)
        if message is None:
            presence.check()
        elif message.error() is not None:
            presence.doubt()
        elif message.value() == value:
            return time.perf_counter() - began
    raise CommandError(f"a record to {topic} did not come back within {COME_S:.0f} s")
