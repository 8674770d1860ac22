"""Opening logs at start: so many threads per directory, no more."""

import threading
from dataclasses import dataclass

import pytest
import trio

from broker.log_loading import load_all_logs
from broker.world.clock import SystemClock
from broker.world.machine import MachineWorkers


@dataclass
class Job:
    """Waits until as many run as may at a time, so that the peak is seen on any machine."""

    log_dir: str
    counts: dict[str, int]
    peaks: dict[str, int]
    lock: threading.Lock
    barrier: threading.Barrier
    clean: bool = False
    log: object = None

    @property
    def is_done(self) -> bool:
        return self.log is not None

    def run(self) -> object:
        with self.lock:
            self.counts[self.log_dir] += 1
            self.peaks[self.log_dir] = max(self.peaks[self.log_dir], self.counts[self.log_dir])
        self.barrier.wait(10)
        with self.lock:
            self.counts[self.log_dir] -= 1
        return object()

    def complete(self, outcome: object) -> None:
        self.log = outcome


class Manager:
    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.finished = False

    def load_jobs(self, topic_configs: object) -> list[Job]:
        return self.jobs

    def finish_loading(self) -> None:
        assert all(job.log is not None for job in self.jobs)
        self.finished = True


@pytest.mark.parametrize("threads", [1, 3])
def test_s_rec_8_each_directory_has_its_recovery_threads(threads: int) -> None:
    directories = ("/a", "/b")
    counts, peaks = dict.fromkeys(directories, 0), dict.fromkeys(directories, 0)
    lock, barrier = threading.Lock(), threading.Barrier(threads * len(directories))
    jobs = [
        Job(directory, counts, peaks, lock, barrier) for directory in directories for _ in range(6)
    ]
    manager = Manager(jobs)

    async def main() -> None:
        await load_all_logs(
            manager,  # type: ignore[arg-type]
            lambda topic: None,  # type: ignore[arg-type,return-value]
            threads_per_dir=threads,
            clock=SystemClock(),
            workers=MachineWorkers(),
        )

    trio.run(main)
    assert manager.finished
    assert peaks == dict.fromkeys(directories, threads)
