"""The cleaner threads: `log.cleaner.threads` loops that compact logs (Kafka's `LogCleaner`).

Each loop takes the filthiest log (`storage.cleaner.manager`) and cleans it
(`storage.cleaner.cleaning`): its own child process (`DedicatedWorker`) reads and writes, in steps
of bounded size. Between two steps it waits for the throttle that all loops share, and aborts the
cleaning if it is not wanted any more because the log is truncated, moved or deleted. After each
round a loop applies retention to compacted logs, which `kafka-log-retention` leaves to the cleaner;
if it cleaned nothing, it then sleeps `log.cleaner.backoff.ms`. A child process that was idle for
`IDLE_S` is ended to free its memory.

The cleaning of a log may end early (S-CMP-11)
  a. The cleaning is not wanted any more, or the log has changed meanwhile: its output is discarded.
  b. The disk fails: the log directory goes offline, and the cleaner continues with the others.
  c. Machinery fails: the child dies or cannot be started, the cleaner's modules cannot be imported,
     no descriptor or memory is left. The cleaning is tried again after the backoff.
  d. Anything else: the partition is marked uncleanable and left alone until the next start.
A failure outside a log's own cleaning is a bug, and stops the broker as in any background task.

When a setting of the loops changes (their number, their memory), cleanings end at their next step
and the loops are started anew. A new rate or backoff takes effect at once.

Event loop only. `broker.server` runs it.
"""

import logging
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

import trio

from broker.cleaner.settings import CleanerSettings
from broker.cleaner.throttler import Throttler
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.workers import DedicatedWorker, WorkerDied, Workers
from config.broker_config import BrokerConfig
from protocol.errors import KafkaError
from storage.cleaner.errors import CleaningAborted, UncleanableLog
from storage.cleaner.manager import CleanerManagerStatistics, LogToClean, LookStatistics
from storage.errors import BeingRepaired, StorageError, is_shortage
from storage.log_manager import LogManager
from storage.paths import parent_dir
from storage.waits import Lock, call, sleep

if TYPE_CHECKING:
    from broker.cleaner.cleaning_steps import Cleaned, RunningCleaning

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""Seconds. A child takes some 50 MB, and half a second of processor time to start."""

LEAST_BACKOFF_S: Final = 0.01
"""`log.cleaner.backoff.ms` may be 0, and a loop that never sleeps would starve the others."""

LEAST_STEP_BYTES: Final = 64 * 1024
"""The smallest step. Each costs a message to the child and back, some hundred microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanerStatistics:
    """Gauges (`kafka.log:type=LogCleaner,name=…`)."""

    max_buffer_utilization_percent: int
    cleaner_recopy_percent: int
    max_clean_time_s: int
    max_compaction_delay_s: int
    dead_thread_count: int
    manager: CleanerManagerStatistics


class LogCleaner:
    """Owns the cleaner's loops: starts and ends them, and gives each the next log to clean."""

    def __init__(
        self,
        log_manager: LogManager,
        config: BrokerConfig,
        *,
        clock: TaskClock,
        workers: Workers,
        driver: Driver,
        random: Random,
    ) -> None:
        """`workers` starts the child processes."""
        self.random = random
        self.is_enabled = config.log_cleaner_enable
        """If False, `run` returns at once."""
        self.settings = CleanerSettings.from_config(config)
        self.backoff_ms = config.log_cleaner_backoff_ms
        self.throttler = Throttler(clock, config.log_cleaner_io_max_bytes_per_second)
        self.log_manager = log_manager
        self.clock = clock
        self.workers = workers
        self._driver = driver
        self._looking = Lock()
        self._next_retention = clock.monotonic()
        self._threads: list[CleanerThread] = []
        self._changed = trio.Event()

    # ---- life

    async def run(self) -> None:
        """Run the loops until cancelled; cleanings then end at their next step."""
        if not self.is_enabled:
            return
        while True:
            logger.info("Starting the log cleaner")
            self._changed = trio.Event()
            self._threads = [CleanerThread(self, number) for number in range(self.settings.threads)]
            async with trio.open_nursery() as nursery:
                for thread in self._threads:
                    nursery.start_soon(self._run, thread, name=thread.name)
                await self._changed.wait()
                logger.info("Shutting down the log cleaner.")
                nursery.cancel_scope.cancel()

    async def _run(self, thread: "CleanerThread") -> None:
        await self._driver.run(thread.run(), lambda: thread.name)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed configuration of the broker."""
        if self.throttler.rate != config.log_cleaner_io_max_bytes_per_second:
            self.throttler.rate = config.log_cleaner_io_max_bytes_per_second
            logger.info("Updating logCleanerIoMaxBytesPerSecond: %s", self.throttler.rate)
        self.backoff_ms = config.log_cleaner_backoff_ms
        settings = CleanerSettings.from_config(config)
        if settings != self.settings:
            self.settings = settings
            self._changed.set()

    def statistics(self) -> LogCleanerStatistics:
        """Return numbers for metrics."""
        last = [thread.last for thread in self._threads if thread.last is not None]
        looks = [thread.look for thread in self._threads]
        read = sum(one.stats.bytes_read for one in last)
        return LogCleanerStatistics(
            max_buffer_utilization_percent=int(
                100 * max((one.stats.map_utilization for one in last), default=0)
            ),
            cleaner_recopy_percent=int(
                100 * sum(one.stats.bytes_written for one in last) / max(read, 1)
            ),
            max_clean_time_s=int(max((one.seconds for one in last), default=0)),
            max_compaction_delay_s=max((one.max_delay_ms for one in looks), default=0) // 1000,
            dead_thread_count=sum(thread.has_failed for thread in self._threads),
            manager=self.log_manager.cleaner.statistics(self.log_manager.live_dirs),
        )

    # ---- what the loops share

    async def next_log(self) -> LogToClean | None:
        """Take the filthiest log; None if there is nothing to clean."""
        manager = self.log_manager.cleaner
        work = manager.grab_filthiest()
        if work is None:
            async with self._looking:
                work = manager.grab_filthiest()  # another loop may have looked meanwhile
                if work is None:
                    await manager.look()
                    work = manager.grab_filthiest()
        return work

    async def apply_retention(self) -> None:
        """Apply retention to compacted logs, at most once per backoff over all loops."""
        now = self.clock.monotonic()
        if now >= self._next_retention:
            self._next_retention = now + self.backoff_s
            await self.log_manager.apply_retention_to_compacted()

    @property
    def most_a_step(self) -> int:
        """The most bytes that a child reads in one step: what the throttle lets pass in a second,
        so that a cleaning that is not wanted any more does not sleep for long first."""
        return max(LEAST_STEP_BYTES, int(self.throttler.rate))

    @property
    def backoff_s(self) -> float:
        """Seconds that a loop sleeps when it found nothing to clean."""
        return max(self.backoff_ms / 1000, LEAST_BACKOFF_S)


class CleanerThread:
    """One loop: Kafka's `CleanerThread`."""

    def __init__(self, cleaner: LogCleaner, number: int) -> None:
        self.name = f"kafka-log-cleaner-thread-{number}"
        self.last: Cleaned | None = None
        self.look = LookStatistics()
        """Statistics of the look over all logs, as of the last log that this loop took."""
        self.has_failed = False
        """Whether a bug ended the loop."""
        self._cleaner = cleaner
        self._number = number
        self._manager = cleaner.log_manager.cleaner
        self._worker: DedicatedWorker | None = None
        self._used = 0.0

    async def run(self) -> None:
        """Clean logs until cancelled."""
        try:
            while True:
                if not await self._clean_filthiest():
                    self._end_idle_worker()
                    await sleep(self._cleaner.backoff_s)
        except Exception:
            self.has_failed = True
            raise
        finally:
            self._end_worker()

    async def _clean_filthiest(self) -> bool:
        """Clean the filthiest log and apply retention; return whether a cleaning made progress."""
        work = await self._cleaner.next_log()
        was_cleaned = False
        if work is not None:
            self.look = self._manager.statistics(()).look
            was_cleaned = await self._clean(work)
        await self._cleaner.apply_retention()
        return was_cleaned

    # ---- the child

    def _end_idle_worker(self) -> None:
        if self._cleaner.clock.monotonic() - self._used >= IDLE_S:
            self._end_worker()

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    # ---- one log

    async def _clean(self, work: LogToClean) -> bool:
        """Clean one log; return whether it made progress. Letters are the module docstring's."""
        log, partition = work.log, work.log.topic_partition
        end_offset: int | None = None
        try:
            cleaned = await self._carry_out(work)
        except CleaningAborted as error:  # a
            logger.info("The cleaning of %s was aborted: %s", partition, error)
        except (StorageError, BeingRepaired) as error:  # b: reported where it was raised
            logger.info("%s cannot be cleaned now: %s", partition, error)
        except (WorkerDied, MemoryError) as error:  # c
            logger.error("The cleaning of %s ended early, it is tried again: %r", log, error)
        except OSError as error:  # a, b, c: of the log's files
            self._disk_failed(work, error)
        except (UncleanableLog, KafkaError) as error:  # a, d
            self._give_up(work, str(error))
        except Exception as error:  # a, d
            if self._manager.is_wanted(work):
                logger.exception("Unexpected exception thrown when cleaning log %s.", log)
            self._give_up(work, f"{type(error).__name__}: {error}")
        else:
            end_offset = cleaned.stats.end_offset
            self.last = cleaned
        finally:
            self._used = self._cleaner.clock.monotonic()
            self._manager.done_cleaning(work, end_offset)
        return end_offset is not None and end_offset > work.due.extent.first_dirty_offset

    def _give_up(self, work: LogToClean, why: str) -> None:
        """Mark the log uncleanable, unless the child read what was cut under its hands."""
        if self._manager.is_wanted(work):
            self._manager.mark_uncleanable(work.log, why)
        else:
            logger.info("The cleaning of %s was aborted: %s", work.log, why)

    def _disk_failed(self, work: LogToClean, error: OSError) -> None:
        """Judge an OSError of the child or a job; files of a log that has gone may be missing."""
        if not self._manager.is_wanted(work):
            logger.info("The cleaning of %s was aborted: %s", work.log, error)
        elif is_shortage(error):
            logger.error("%s is cleaned later: %s", work.log, error)
        else:
            logger.error("Failed to clean up log for %s: %s", work.log, error)
            self._cleaner.log_manager.report_failure(parent_dir(work.log.dir), error)

    async def _carry_out(self, work: LogToClean) -> "Cleaned":
        """Run one cleaning to its end and log its result. Raises what `_clean` catches."""
        cleaner = self._cleaner
        try:
            running_cleaning = await call(_import_steps)
        except (ImportError, OSError) as error:
            raise WorkerDied(f"the cleaner's modules could not be imported: {error!r}") from error
        if self._worker is None:
            self._worker = cleaner.workers.dedicated_worker()
        running = running_cleaning(
            work,
            worker=self._worker,
            clock=cleaner.clock,
            throttle=cleaner.throttler.throttle,
            is_wanted=lambda: self._manager.is_wanted(work),
            hash_seed=cleaner.random.getrandbits(64),
        )
        cleaned = await running.carry_out(cleaner.settings, most_a_step=cleaner.most_a_step)
        cleaned.tell(self._number, work, self.look)
        return cleaned


def _import_steps() -> "type[RunningCleaning]":
    """Run in a thread: importing takes tens of milliseconds, too long for the event loop."""
    from broker.cleaner.cleaning_steps import RunningCleaning

    return RunningCleaning
