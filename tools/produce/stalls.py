"""Why records wait: librdkafka tries again, without a word, until `message.timeout.ms` is over.

That is five minutes by default. The brokers' metadata have the reason, if it lies in the topic.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from tools.log_ends import place_name

STALL_S: Final = 5.0
"""Seconds without an acknowledged record, after which the reason is looked for."""
_ANSWER_S: Final = 5.0


class Stall:
    """Notices that a producer's records wait, and prints the reason once."""

    def __init__(self, producer: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._producer: Final = producer
        self._clock: Final = clock
        self._acknowledged = -1
        self._noted = self._since = clock()
        self._reason: str | None = None

    def note(self, topic: str, acknowledged: int) -> None:
        """So many records are acknowledged while others wait, the last one for `topic`."""
        now = self._clock()
        idle, self._noted = now - self._noted, now
        if acknowledged != self._acknowledged or idle >= STALL_S:  # the input may have paused
            self._acknowledged, self._since = acknowledged, now
        elif self._reason is None and now - self._since >= STALL_S:
            self._since = now
            self._reason = reason_to_wait(self._producer, topic)
            if self._reason is not None:
                print(f"waiting: {self._reason}", file=sys.stderr)

    def reason(self, topic: str) -> str | None:
        """Return why records of `topic` have waited until they timed out; None if unknown."""
        return self._reason or reason_to_wait(self._producer, topic)


def reason_to_wait(producer: Any, topic: str) -> str | None:
    """Return why records of `topic` cannot be sent now; None if the metadata do not tell."""
    from confluent_kafka import KafkaException

    try:
        found = producer.list_topics(topic, timeout=_ANSWER_S).topics.get(topic)
    except KafkaException:
        return None  # `Presence` looks after brokers that do not answer
    if found is None:
        return None
    if found.error is not None:
        return f"{topic}: {found.error.str()}"
    for number, partition in sorted(found.partitions.items()):
        place = place_name((topic, number))
        if partition.leader < 0:
            return f"{place} has no leader"
        in_sync, replicas = len(partition.isrs), len(partition.replicas)
        if in_sync < replicas:
            return f"{place} has {in_sync} of {replicas} replicas in sync (min.insync.replicas)"
    return None
