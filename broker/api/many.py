"""Answers of many elements: made one at a time, while they are encoded, and encoded in turns.

A handler that answers for a few items makes a plain message. For many it would take long, and the
results would be hundreds of bytes each: `results` are then `Lazy`, and the message a `LargeReply`.
What the items are must be settled before (a list of one's own); what is said of each is looked up
when its turn comes.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from broker.request import LargeReply
from protocol.schema import Message
from protocol.schema.lazy import Elements, Lazy

Item = TypeVar("Item")
Result = TypeVar("Result")
MessageT = TypeVar("MessageT", bound=Message)

MANY: Final = 256
"""Items from which on they are not gone through in one go: less than a millisecond of each kind."""


def results(items: Elements[Item], make: Callable[[Item], Result]) -> Elements[Result]:
    """What stands in the message for `items`: `make(item)` of each."""
    return [make(item) for item in items] if len(items) <= MANY else Lazy(items, make)


def reply(message: MessageT, count: int) -> MessageT | LargeReply:
    """What a handler returns; `count` is of the items in the message, nested ones included."""
    return message if count <= MANY else LargeReply(message)
