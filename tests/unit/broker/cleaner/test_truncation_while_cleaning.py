"""S-CMP-11: a follower's log is cut while the cleaner's child reads it."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio

from broker.cleaner.log_cleaner import CleanerThread, LogCleaner
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from config.broker_config import BrokerConfig
from storage.cleaner.work import map_some, rewrite_some
from storage.log.log import Log
from tests.support.compacted_logs import CompactedLogs, compacted

STEPS = (map_some, rewrite_some)


class MeanwhileWorkers(InlineWorkers):
    """Something happens once, right before the cleaner's nth step."""

    def __init__(self, happens: Callable[[], object], nth: int) -> None:
        self._happens = happens
        self._nth = nth
        self.steps = 0

    async def in_thread(self, work: Callable[..., Any], *values: Any, **more: Any) -> Any:
        if work in STEPS:
            self.steps += 1
            if self.steps == self._nth:
                self._happens()
        return await super().in_thread(work, *values, **more)


def clean_once(logs: CompactedLogs, workers: MeanwhileWorkers) -> bool:
    """Have a cleaner's loop clean the filthiest log; return whether that made progress."""
    config, clock = BrokerConfig.parse(logs.properties), SystemClock()
    driver = Driver(workers, clock)
    cleaner = LogCleaner(
        logs.manager, config, clock=clock, workers=workers, driver=driver, random=Random(1)
    )
    thread = CleanerThread(cleaner, 0)
    cleaned: list[bool] = []

    async def main() -> None:
        cleaned.append(await driver.run(thread._clean_filthiest()))

    trio.run(main)
    return cleaned[0]


@pytest.mark.parametrize(
    "cut",
    [
        lambda log: log.truncate_fully_and_start_at(100),
        lambda log: log.truncate_to(1),
        lambda log: log.truncate_to(log.segments.active.base_offset - 1),
    ],
    ids=["starts over", "is cut at its start", "is cut at its end"],
)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_s_cmp_11_a_log_that_is_cut_while_it_is_cleaned_is_cleaned_later(
    cut: Callable[[Log], object], nth: int
) -> None:
    logs = CompactedLogs(compacted(min_cleanable_dirty_ratio=0.0))
    log = logs.filled()
    workers = MeanwhileWorkers(lambda: cut(log), nth)
    assert not clean_once(logs, workers)
    assert workers.steps == nth
    assert logs.offline == []
    assert logs.cleaner.why_uncleanable(log) is None
    logs.extend(log, 5)
    assert clean_once(logs, MeanwhileWorkers(lambda: None, 0))
    assert logs.cleaner.checkpoints.get(log) == log.segments.active.base_offset


def test_s_cmp_11_a_log_that_cannot_be_read_is_marked_when_nothing_cut_it() -> None:
    logs = CompactedLogs(compacted(min_cleanable_dirty_ratio=0.0))
    log = logs.filled()
    file = log.segments.first.file
    workers = MeanwhileWorkers(lambda: file.pwrite(b"\0" * 80, 0), 1)
    assert not clean_once(logs, workers)
    assert logs.cleaner.why_uncleanable(log) is not None
