"""Functions over batches of the log that would hold the event loop, and the places where they run.

A caller that needs something which only the records tell passes a `Look` to the log. The broker's
reads and looks in a child process (`broker.replication.batch_looker`), which calls `look_at`;
`look_here` does both here and now. This module imports nothing of the broker, so the child process
starts quickly and stays small.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from storage.log.results import FileSlice, SliceElsewhere

Result = TypeVar("Result")


class Look(Protocol):
    """Returns `look(bytes of the batches, *values)`; `look` is a module's function."""

    async def __call__(
        self, batches: FileSlice, look: Callable[..., Result], /, *values: Any
    ) -> Result:
        """Raises OSError only if the log cannot be read; what `look` raises, and WorkerDied."""
        ...


async def look_here(batches: FileSlice, look: Callable[..., Result], *values: Any) -> Result:
    """The `Look` of tools and tests, which hold no event loop."""
    return look(batches.read(), *values)


def look_at(batches: SliceElsewhere, look: Callable[..., Any], *values: Any) -> tuple[bool, Any]:
    """Return (True, the result of `look(bytes, *values)`), or (False, None) if the file is gone.

    Raises OSError, and what `look` raises.
    """
    data = batches.read()
    return (False, None) if data is None else (True, look(data, *values))
