"""Replies made by generators: most are done at once, long ones go on as an `Aside`.

    def _reply(self, ctx, request) -> Steps:
        for asked in request.asked:
            ...                     # a critical section
            yield None              # other tasks may run here
            found = yield OpenBatch(...)    # a worker opens a batch
        return response

As with a search in `storage.log.times`, the log may change at any yield.
"""

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from broker.replication.batch_looker import BatchLooker
from broker.request import Aside
from broker.world.turns import Turns
from broker.world.workers import WorkerDied
from protocol.records.errors import RecordsError
from protocol.records.search import Found, first_at_or_after
from storage.clock import Clock
from storage.log.times import OpenBatch

_AT_ONCE: Final = 200
"""Steps before a reply counts as long work; a step is some ten microseconds."""

_LIGHT_ITEMS: Final = 50

T = TypeVar("T")
Item = TypeVar("Item")

Steps = Generator[OpenBatch | None, Found | None, T]
"""Returns a reply. For a yielded `OpenBatch` it is sent what `first_at_or_after` found."""


def batches_of(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut `items` into pieces for one step each, if an item takes about a microsecond."""
    for at in range(0, len(items), _LIGHT_ITEMS):
        yield items[at : at + _LIGHT_ITEMS]


class InSteps:
    """Replies that are made step by step. One per broker."""

    def __init__(self, looker: BatchLooker, clock: Clock) -> None:
        self._looker = looker
        self._clock = clock

    def reply(self, steps: Steps[T]) -> T | Aside:
        """The reply, or an `Aside` that makes the rest of it."""
        try:
            for _ in range(_AT_ONCE):
                step = next(steps)
                if step is not None:
                    break
        except StopIteration as end:
            reply: T = end.value
            return reply
        return Aside(partial(self._finish, steps, step))

    async def _finish(self, steps: Steps[T], step: OpenBatch | None) -> T:
        turns = Turns(self._clock)
        try:
            while True:
                if step is None:
                    await turns.next()
                    step = next(steps)
                    continue
                try:
                    found = await self._looker.look(
                        step.batch, first_at_or_after, 0, step.timestamp, step.start_offset
                    )
                except (OSError, RecordsError, WorkerDied) as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(found)
        except StopIteration as end:
            reply: T = end.value
            return reply
        finally:
            steps.close()
