"""A member of a group has read everything when all its partitions are at their end."""

from types import SimpleNamespace
from typing import Any

from tests.support.client_messages import FakeMessage
from tools.consume.member import Member
from tools.consume.polling import Polling
from tools.presence import Presence

ENDS = {("t", 0): 10, ("t", 1): 5}


class FakeConsumer:
    def __init__(self) -> None:
        self.callbacks: dict[str, Any] = {}

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks


def places(*partitions: int) -> list[Any]:
    return [SimpleNamespace(topic="t", partition=partition) for partition in partitions]


def message(partition: int, offset: int) -> FakeMessage:
    return FakeMessage(place=("t", partition), its_offset=offset)


def test_a_partition_that_comes_back_is_read_to_its_end_again() -> None:
    """Whoever had it meanwhile may have committed less than was read here."""
    consumer = FakeConsumer()
    member = Member(consumer, ["t"], Polling(consumer, ["t"], Presence({})), ENDS)
    assigned, gone = consumer.callbacks["on_assign"], consumer.callbacks["on_revoke"]
    assert not member._is_done([], ENDS)
    assigned(consumer, places(0, 1))
    assert not member._is_done([message(0, 8), message(1, 4)], ENDS)
    gone(consumer, places(1))
    assert member._is_done([message(0, 9)], ENDS)
    assigned(consumer, places(1))
    assert not member._is_done([], ENDS)
    assert member._is_done([message(1, 4)], ENDS)
