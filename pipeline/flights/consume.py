"""Reads a topic with a group of kafka-python members, one of which joins in the middle.

With the client's default settings each member commits what it has read before it gives partitions
away, so a record is read once; what the group read is told by (partition, offset), so a second
reading would show.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer


@dataclass
class GroupReading:
    """What a group has read."""

    values: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """(partition, offset) to value."""
    repeated: int = 0
    """How many records were handed out more than once."""
    rebalances: int = 0
    """How many times a member was given partitions."""
    given: set[str] = field(default_factory=set)
    """Members that were given partitions."""
    held: threading.Event = field(default_factory=threading.Event)
    """While set, members take part in the group but read next to nothing.

    Not by pausing their partitions: kafka-python 3.0 now and then never asks for a partition again
    that was paused with a fetched batch of it in hand (on Apache Kafka just the same).
    """
    by_member: dict[str, int] = field(default_factory=dict)
    """Member name to the number of records it read."""


class _Member(threading.Thread):
    """One consumer of the group in its own thread."""

    def __init__(
        self, name: str, settings: dict[str, Any], topic: str, reading: GroupReading
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._settings = settings
        self._topic = topic
        self._reading = reading
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._read()
        except BaseException as failure:
            self.failure = failure
            raise

    def _read(self) -> None:
        reading = self._reading
        consumer = KafkaConsumer(**self._settings)
        reading.by_member[self.name] = 0
        name = self.name

        class Counting(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                pass

            def on_partitions_assigned(self, assigned: Any) -> None:
                if assigned:
                    reading.rebalances += 1
                    reading.given.add(name)

        consumer.subscribe([self._topic], listener=Counting())
        while not self.stopping.is_set():
            most = 1 if reading.held.is_set() else None
            if most:
                self.stopping.wait(0.05)
            for messages in consumer.poll(timeout_ms=200, max_records=most).values():
                for message in messages:
                    place = (message.partition, message.offset)
                    if place in reading.values:
                        reading.repeated += 1
                    reading.values[place] = message.value
                reading.by_member[self.name] += len(messages)
        consumer.close()


def consume_with_group(
    bootstrap: str,
    topic: str,
    group: str,
    expected: int,
    on_progress: Callable[[int], None] = lambda _count: None,
    timeout_s: float = 300,
) -> GroupReading:
    """Read `expected` records with three members, the third joining after a third of them.

    The other two read on when it has its partitions.

    Raises TimeoutError when they do not come in time, or what a member died of.
    """
    reading = GroupReading()
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "max_poll_records": 2000,
    }
    members = [_Member(f"member-{n}", settings, topic, reading) for n in (1, 2, 3)]
    waiting = [members[2]]
    for member in members[:2]:
        member.start()
    deadline = time.monotonic() + timeout_s
    while len(reading.values) < expected:
        for member in members:
            if member.failure is not None:
                raise member.failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"read {len(reading.values)} of {expected} in {timeout_s} s")
        if waiting and len(reading.values) >= expected // 3:
            # However fast the others are, the newcomer finds something left to read.
            reading.held.set()
            waiting.pop().start()
        if members[2].name in reading.given:
            reading.held.clear()
        on_progress(len(reading.values))
        time.sleep(0.1)
    for member in members:
        member.stopping.set()
    for member in members:
        if member.is_alive():
            member.join(30)
    on_progress(len(reading.values))
    return reading
