"""Sends records of one size, at full speed or at a rate, and times their acknowledgements."""

import os
import time
from typing import Any, Final

from tools.perf.measure import Measure, Told
from tools.perf.wanted import Wanted
from tools.presence import Presence

LOOK_EVERY: Final = 256
"""Records sent between two polls of the client and checks of the clock."""
POLL_S: Final = 0.05
PAYLOADS: Final = 64
"""Number of different values, so that compression does not find the same value always."""


def payloads(size: int) -> list[bytes]:
    """Return values of `size` bytes: random letters, repeated once, as text repeats itself."""
    found = []
    for _ in range(PAYLOADS):
        random = os.urandom(size // 4 + 1).hex().encode()
        found.append((random + random)[:size])
    return found


def produce_records(
    producer: Any,
    presence: Presence,
    measure: Measure,
    wanted: Wanted,
    told: Told,
) -> None:
    """Send up to the limits of `wanted`, then wait for acknowledgements. Raises CommandError."""
    topic, size, records, rate = wanted.topic, wanted.size, wanted.records, wanted.rate
    values = payloads(size)
    note, note_ms = measure.note, measure.note_ms

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            note(1, size)
            note_ms(message.latency() * 1000)
        else:
            measure.note_failure(error.str())

    sent = 0
    ends = None if wanted.seconds is None else measure.began + wanted.seconds
    while not measure.interrupted and (records is None or sent < records):
        now = time.monotonic()
        if ends is not None and now >= ends:
            break
        allowed = LOOK_EVERY
        if rate is not None:
            allowed = min(allowed, int((now - measure.began) * rate) + 1 - sent)
        if records is not None:
            allowed = min(allowed, records - sent)
        for number in range(sent, sent + allowed):
            while True:
                try:
                    producer.produce(topic, values[number % PAYLOADS], on_delivery=delivered)
                    break
                except BufferError:  # the client's queue is full
                    _look(producer, presence, measure, told, POLL_S)
        sent += max(allowed, 0)
        _look(producer, presence, measure, told, 0 if allowed > 0 else min(POLL_S, 1 / (rate or 1)))
    while producer.flush(POLL_S):
        _look(producer, presence, measure, told, 0)


def _look(producer: Any, presence: Presence, measure: Measure, told: Told, wait_s: float) -> None:
    producer.poll(wait_s)
    interval = measure.tick(time.monotonic())
    if interval is not None:
        presence.check()
        told(interval)
