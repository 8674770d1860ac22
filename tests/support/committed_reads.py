"""The aborted transactions that committed reads return, at once or after a repair."""

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
    """Return the first offsets of all aborted transactions, by reads from every offset.

    Moves the high watermark to the end of the log. Raises BeingRepaired.
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
    """Return the result of `ask`, which must raise BeingRepaired first, after up to `repairs` runs
    of the repair task."""
    with pytest.raises(BeingRepaired):
        ask()
    for _ in range(repairs):
        run_task(manager, log_tasks.REPAIR_INDEXES)
        with suppress(BeingRepaired):
            return ask()
    raise AssertionError("one segment after the other")
