"""Opening logs at start: so many threads per directory, no more, and how far a long start came."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from broker.startup.log_loader import (
    LONG_S,
    QUICK_LOG_S,
    RECOVERED_S,
    WRITE_DOWN_EVERY_S,
    load_all_logs,
)
from broker.world.driver import Driver
from tests.support.virtual_time import Timeline, VirtualClock


class HandsClock(VirtualClock):
    """In a thread it is ahead of the loop's time by what the thread has done."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@dataclass
class Start:
    """One start: the seconds that each log takes, and the events of the start."""

    seconds: dict[str, float]
    """Directory to what each of its logs takes."""
    logs: int
    busy: dict[str, int] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    opened: list[tuple[float, float]] = field(default_factory=list)
    """When a log was opened, and from how long on it was to be synced."""
    written: list[float] = field(default_factory=list)
    """The times at which progress was checkpointed."""
    took: float = 0.0
    finished: bool = False

    # The methods of `LogManager`

    def load_jobs(self, topic_configs: object) -> list["TimedJob"]:
        self.jobs = [TimedJob(self, path) for path in self.seconds for _ in range(self.logs)]
        return self.jobs

    async def checkpoint_loading(self) -> None:
        self.written.append(self.clock.monotonic())

    def finish_loading(self) -> None:
        assert all(job.done for job in self.jobs)
        self.finished = True

    # The methods of `Workers`

    async def in_thread(
        self, work: Callable[..., Any], queue: Any, *, limiter: trio.CapacityLimiter
    ) -> Any:
        directory = queue[0].log_dir
        async with limiter:
            self.busy[directory] = self.busy.get(directory, 0) + 1
            self.peaks[directory] = max(self.peaks.get(directory, 0), self.busy[directory])
            done = work(queue)
            ahead, self.clock.ahead = self.clock.ahead, 0.0
            await self.clock.sleep(ahead)
            self.busy[directory] -= 1
        return done

    def run(self, threads: int) -> None:
        timeline = Timeline()
        self.clock = HandsClock(timeline)

        async def main() -> None:
            await load_all_logs(
                self,  # type: ignore[arg-type]
                lambda topic: None,  # type: ignore[arg-type,return-value]
                threads_per_dir=threads,
                clock=self.clock,
                driver=Driver(self, self.clock),  # type: ignore[arg-type]
            )
            self.took = self.clock.monotonic()

        trio.run(main, clock=timeline)
        assert self.finished
        assert len(self.opened) == self.logs * len(self.seconds)


@dataclass
class TimedJob:
    start: Start
    log_dir: str
    sync_above_s: float = math.inf
    done: bool = False

    def run(self) -> object:
        assert not self.done
        clock = self.start.clock
        self.start.opened.append((clock.monotonic(), self.sync_above_s))
        clock.ahead += self.start.seconds[self.log_dir]
        return object()

    def complete(self, outcome: object) -> None:
        self.done = True


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_s_rec_8_each_directory_has_its_recovery_threads(threads: int) -> None:
    start = Start({"/a": 0.1, "/b": 0.1}, logs=20)
    start.run(threads)
    assert start.peaks == {"/a": threads, "/b": threads}


def test_s_rec_8_only_directories_whose_logs_take_long_are_given_more_threads() -> None:
    seconds = {"/quick": QUICK_LOG_S / 5, "/slow": QUICK_LOG_S * 1.4, "/slower": 2.0}
    start = Start(seconds, logs=600)
    start.run(4)
    assert start.peaks == {"/quick": 1, "/slow": 4, "/slower": 4}


def test_a_short_start_writes_nothing_down() -> None:
    start = Start({"/a": LONG_S / 10}, logs=8)
    start.run(1)
    assert start.written == []
    assert {above for _, above in start.opened} == {math.inf}


def test_s_rec_10_a_long_start_syncs_what_is_slow_and_writes_down_how_far_it_has_come() -> None:
    start = Start({"/a": QUICK_LOG_S * 10}, logs=200)
    start.run(1)
    assert start.took == pytest.approx(10.0)
    for at, above in start.opened:
        if abs(at - LONG_S) > QUICK_LOG_S * 10:
            assert above == (RECOVERED_S if at > LONG_S else math.inf)
    due = [LONG_S + number * WRITE_DOWN_EVERY_S for number in (1, 2, 3)]
    assert start.written == pytest.approx([*due, start.took])
