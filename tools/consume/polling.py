"""Reads a consumer's messages in batches, and notices failures that librdkafka does not report.

librdkafka would wait for ever for a deleted topic or a broker that went away; here these end the
reading with a CommandError. While no message comes, the topics are looked up.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.log_ends import Place
from tools.presence import Presence

BATCH: Final = 1000
WAIT_S: Final = 0.3
"""The longest wait in librdkafka, which delays Ctrl-C."""
LOOK_UP_S: Final = 2.0


class Polling:
    """One consumer's messages."""

    def __init__(
        self,
        consumer: Any,
        topics: Sequence[str],
        presence: Presence,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer: Final = consumer
        self._topics: Final = topics
        self._presence: Final = presence
        self._clock: Final = clock
        self._quiet_since = clock()
        self.ends: dict[Place, int] = {}
        """The end offset of each partition that was read to its end."""

    def batches(self) -> Iterator[list[Any]]:
        """Yield lists of messages, which may be empty, without end. Raises CommandError."""
        while True:
            first = self._consumer.poll(WAIT_S)
            if first is None:
                self._look_up()
                yield []
                continue
            self._quiet_since = self._clock()
            messages = [first, *self._consumer.consume(BATCH - 1, 0)]
            records = [message for message in messages if message.error() is None]
            if len(records) < len(messages):
                for message in messages:
                    if message.error() is not None:
                        self._note(message)
            yield records

    def _note(self, message: Any) -> None:
        """Note the end of a partition, or a sign of trouble. Raises CommandError."""
        from confluent_kafka import KafkaError

        error = message.error()
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self.ends[message.topic(), message.partition()] = message.offset()
        elif code in (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError._UNKNOWN_PARTITION,
            KafkaError.UNKNOWN_TOPIC_ID,
        ):
            raise CommandError(f"topic {message.topic() or ''} is gone: it was deleted")
        elif code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
            self._presence.doubt()
            self._presence.check()
        elif not error.retriable():
            raise CommandError(error.str())

    def _look_up(self) -> None:
        from confluent_kafka import KafkaException

        self._presence.check()
        now = self._clock()
        if now - self._quiet_since < LOOK_UP_S:
            return
        self._quiet_since = now
        try:
            known = self._consumer.list_topics(timeout=TIMEOUT_S / 5).topics
        except KafkaException:
            self._presence.doubt()
            return
        for topic in self._topics:
            if topic not in known:
                raise CommandError(f"topic {topic} is gone: it was deleted")
