"""Finds objects of the product that only the collector of cycles would free."""

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from broker.world.transport import Address

TIMES: Final = 3
PRODUCT: Final = {"broker", "config", "protocol", "storage", "tls"}
OF_TESTS: Final = (Address,)
"""Held by the cycles of streams in memory."""


@contextmanager
def saving_garbage() -> Iterator[list[Any]]:
    """Return what only a collection would free; filled at the end."""
    garbage: list[Any] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield garbage
        gc.collect()
        garbage.extend(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def leaves_nothing(once: Callable[[], Awaitable[None]]) -> None:
    """Do it a few times; raise AssertionError for objects of the product in cycles."""
    await once()  # what is kept from the first time on is there
    with saving_garbage() as garbage:
        for _ in range(TIMES):
            await once()
    of_product = [found for found in garbage if type(found).__module__.split(".")[0] in PRODUCT]
    assert not Counter(type(found) for found in of_product if not isinstance(found, OF_TESTS))
