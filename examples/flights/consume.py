"""Reads a topic with a group of kafka-python members, one of which joins in the middle.

With the client's default settings each member commits what it has read before it gives partitions
away, so each record is read once. The group's records are kept by (partition, offset), so that a
second reading shows.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer


@dataclass
class GroupReading:
    """The records that a group has read."""

    values: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Values by (partition, offset)."""
    repeated: int = 0
    """Number of records that were read more than once."""
    rebalances: int = 0
    """Number of assignments to members."""
    given: set[str] = field(default_factory=set)
    """Members that have been assigned partitions."""
    held: threading.Event = field(default_factory=threading.Event)
    """While set, members stay in the group but read hardly anything.

    Not by pausing their partitions: kafka-python 3.0 now and then never asks for a partition again
    that was paused with a fetched batch of it in hand (on Apache Kafka just the same).
    """
    by_member: dict[str, int] = field(default_factory=dict)
    """Number of records read, by member name."""


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

    Raises TimeoutError if they do not arrive in time, or the error that ended a member.
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
            # So that the newcomer finds records to read, however fast the others are.
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
