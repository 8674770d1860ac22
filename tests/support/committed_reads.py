"""What a committed reader is told of aborted transactions, at once or after it had to wait."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from storage import log_tasks
from storage.errors import BeingRepaired
from storage.log.log import Log
from storage.log.results import FetchIsolation
from storage.log_manager import LogManager
from tests.support.log_tasks import run_task


def aborted_told(log: Log) -> list[int]:
    """First offsets of all aborted transactions, as reads from every offset tell them.

    The high watermark is the end of the log. Raises BeingRepaired.
    """
    log.update_high_watermark(log.log_end_offset)
    found: set[int] = set()
    for offset in range(log.log_start_offset, log.log_end_offset):
        aborted = log.read(offset, 1 << 20, FetchIsolation.TXN_COMMITTED).aborted
        assert aborted is not None
        found |= {one.first_offset for one in aborted}
    return sorted(found)


def told_in_the_end(
    manager: LogManager, ask: Callable[[], list[int]], *, repairs: int
) -> list[int]:
    """What `ask` returns after it was told to wait, and that many `repairs` at most."""
    with pytest.raises(BeingRepaired):
        ask()
    for _ in range(repairs):
        run_task(manager, log_tasks.REPAIR_INDEXES)
        with suppress(BeingRepaired):
            return ask()
    raise AssertionError("one segment after the other")
