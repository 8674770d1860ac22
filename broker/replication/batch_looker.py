"""Runs functions over batches of the log in a child process: for old formats and timestamp lookups.

A loop over records in a thread would take time from the event loop, so it runs in a child process.
The child reads the batches itself, because pickling a hundred megabytes would hold the
interpreter's lock.

One look runs at a time; next is the client that has used it least lately (`broker.fairness`).
`batch_opening` queues separately for the same child process, which serves the two queues in turn:
in a common queue one client's heavy batches would delay all looks.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from broker.fairness import FairLock
from storage.log.looking import look_at
from storage.log.results import FileSlice
from storage.waits import call, compute

Result = TypeVar("Result")


class BatchLooker:
    """Runs functions over batches of the log in a child process. One per broker; loop only."""

    def __init__(self, monotonic: Callable[[], float] = lambda: 0.0) -> None:
        """`monotonic` measures how long each client has used the child process."""
        self._one_at_a_time = FairLock(monotonic, parks=True)

    async def look(
        self, batches: FileSlice | bytes, look: Callable[..., Result], *values: Any
    ) -> Result:
        """Return `look(bytes, *values)`, run in a child process: a `storage.log.looking.Look`.

        Raises WorkerDied, OSError (only when the log could not be read: the machinery's failures
        are WorkerDied), and the errors of `look`.
        """
        async with self._one_at_a_time:
            if not isinstance(batches, bytes):
                elsewhere = batches.elsewhere()
                if elsewhere is not None:
                    found, result = await compute(look_at, elsewhere, look, *values)
                    if found:
                        answer: Result = result
                        return answer
                # The file is in memory, or was renamed since (deleted or moved).
                batches = await call(batches.read)
            return await compute(look, batches, *values)
