"""What the roles need of a client, and how they hear of its troubles.

The classes over client libraries have the same methods, blocking: `roles.Awaited` is between them.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

Records = dict[str, list[tuple[int, str]]]
"""Key (`topic-partition`) to (offset, value), in the order of the answer."""

PATIENCE_S: Final = 25.0
"""How long a client tries before it gives up on a request."""
REQUEST_TIMEOUT_MS: Final = 3000
TRANSACTION_TIMEOUT_MS: Final = 8000


class MustAbort(Exception):
    """Something failed; the transaction can be aborted and the producer goes on."""


class GivenUp(Exception):
    """The producer is fenced or does not know where it stands: a new one must take over."""


class TransactionalProducer(Protocol):
    """One transactional id. Everything may raise MustAbort or GivenUp."""

    async def begin(self) -> None:
        """A new transaction."""

    async def send(self, key: str, value: str) -> None:
        """One record; it may travel later."""

    async def flush(self) -> dict[str, int]:
        """Wait for what was sent; value to offset, where an offset was told."""

    async def commit(self) -> None:
        """Returns when the transaction is committed."""

    async def abort(self) -> None:
        """Returns when the transaction is aborted."""


class CommittedReader(Protocol):
    """A read_committed consumer."""

    async def poll(self, timeout_s: float, limit: int) -> Records:
        """What came; `on_move` was called first when the place has changed."""


OnMove = Callable[[Sequence[str]], None]
"""Called with the keys when a reader begins to read elsewhere."""


def split(key: str) -> tuple[str, int]:
    """`topic-partition` as two."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def joined(topic: str, partition: int) -> str:
    """The key of a partition."""
    return f"{topic}-{partition}"
