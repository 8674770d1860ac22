"""Functions over batches of the log that would hold the event loop, and where they run.

Who asks a log for something that only the records tell hands it a `Look`: the broker's reads and
looks in a child process (`broker.replication.batch_looker`), `look_here` here and now. `look_at` is
what the child calls. This imports nothing of the broker, so the process starts quickly and stays
small.
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
    """The `Look` of who is alone: tools, tests."""
    return look(batches.read(), *values)


def look_at(batches: SliceElsewhere, look: Callable[..., Any], *values: Any) -> tuple[bool, Any]:
    """Return (True, the result of `look(bytes, *values)`), or (False, None) if the file is gone.

    Raises OSError, and what `look` raises.
    """
    data = batches.read()
    return (False, None) if data is None else (True, look(data, *values))
