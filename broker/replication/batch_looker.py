"""Looking into batches of the log beside the event loop: for old formats, and for a record's time.

In a thread, a loop over records takes the event loop's time, so it is done in a child process. The
child reads the batches itself: pickling a hundred megabytes for it would hold the interpreter's
lock.

There is one look at a time, and `batch_opening` has a line of its own before the same child
process. The lines are kept apart so that the process serves them in turn: in a common line, one
client's heavy batches would stand before everybody's looks.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from broker.world.workers import Workers
from storage.log.looking import look_at
from storage.log.results import FileSlice

Result = TypeVar("Result")


class BatchLooker:
    """Runs functions over batches of the log in a child process. One per broker; loop only."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._one_at_a_time = trio.CapacityLimiter(1)

    async def look(
        self, batches: FileSlice | bytes, look: Callable[..., Result], *values: Any
    ) -> Result:
        """`look(bytes, *values)` in a child process; `look` is a function of a module.

        Raises OSError, WorkerDied and what `look` raises.
        """
        async with self._one_at_a_time:
            if not isinstance(batches, bytes):
                elsewhere = batches.elsewhere()
                if elsewhere is not None:
                    found, result = await self._workers.in_process(
                        look_at, elsewhere, look, *values
                    )
                    if found:
                        answer: Result = result
                        return answer
                # In memory, or renamed since: deleted, moved.
                batches = await self._workers.in_thread(batches.read)
            return await self._workers.in_process(look, batches, *values)
