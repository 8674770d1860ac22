"""Clients as the roles use them, and the exceptions by which they report failures.

Classes over client libraries have the same methods, but these block: `roles.Awaited` adapts them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

Records = dict[str, list[tuple[int, str]]]
"""Key (`topic-partition`) to (offset, value), in the order of the answer."""

PATIENCE_S: Final = 25.0
"""The time after which a client gives up on a request."""
REQUEST_TIMEOUT_MS: Final = 3000
TRANSACTION_TIMEOUT_MS: Final = 8000


class MustAbort(Exception):
    """Something failed; the producer can abort the transaction and be used further."""


class GivenUp(Exception):
    """The producer is fenced, or its state is unknown: a new producer must take over."""


@contextmanager
def raising(kind: type[Exception], *errors: type[Exception]) -> Iterator[None]:
    """Raise `kind` in the place of one of a library's errors."""
    try:
        yield
    except errors as error:
        raise kind(repr(error)) from error


class TransactionalProducer(Protocol):
    """A producer with a transactional id. Every method may raise MustAbort or GivenUp."""

    async def begin(self) -> None:
        """Begin a transaction."""

    async def send(self, key: str, value: str) -> None:
        """Send one record, now or by the next `flush`."""

    async def flush(self) -> dict[str, int]:
        """Wait until all is sent; return the offset by value, where the broker gave one."""

    async def commit(self) -> None:
        """Commit the transaction, and wait until that is done."""

    async def abort(self) -> None:
        """Abort the transaction, and wait until that is done."""


class CommittedReader(Protocol):
    """A read_committed consumer."""

    async def poll(self, timeout_s: float, limit: int) -> Records:
        """Return new records. If the position has jumped, `on_move` is called before."""


OnMove = Callable[[Sequence[str]], None]
"""Called with the keys of partitions whose position has jumped."""


def split(key: str) -> tuple[str, int]:
    """Split `topic-partition` into the topic and the number."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def joined(topic: str, partition: int) -> str:
    """Return the key of a partition, `topic-partition`."""
    return f"{topic}-{partition}"
