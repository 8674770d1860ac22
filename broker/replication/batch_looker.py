"""Looking into batches of the log beside the event loop: for old formats, and for a record's time.

What is produced is opened by `batch_opening`, which has a line of its own before the same child
process: the two have their turns one after the other, however many wait in either.

A loop over records takes the loop's time in a thread, too, so it is done in a child process, which
reads the batches itself: to send it a hundred megabytes would keep the interpreter's lock for a
tenth of a second. One at a time, whoever asks.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from broker.world.workers import Workers
from storage.log.looking import look_at
from storage.log.results import FileSlice

Result = TypeVar("Result")


class BatchLooker:
    """One per broker. Event loop only."""

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
