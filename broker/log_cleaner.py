"""The cleaner threads: `log.cleaner.threads` loops that compact logs (Kafka's `LogCleaner`).

Each loop takes the filthiest log (`storage.cleaner.manager`), advances its cleaning on the event
loop (`storage.cleaner.cleaning`), and has a child process of its own (`Hand`) read and write, in
steps of bounded size. Between two steps it waits for the throttle that all loops share, and looks
whether the cleaning is still wanted: a log that is cut, moved or deleted is let go of at once. When
there is nothing to clean, loops apply retention to compacted logs, which `kafka-log-retention`
leaves to them, and sleep `log.cleaner.backoff.ms`. A child that had nothing to do for `IDLE_S`
ends, and its memory with it.

What can go wrong with a log (S-CMP-11)
  a. It is not wanted any more, or has changed under the cleaning: what was written is thrown away.
  b. The disk fails: the log directory goes offline, and the cleaner goes on with the others.
  c. The child dies, or no descriptor is left: it is tried again after the backoff.
  d. Anything else: the partition is marked uncleanable and left alone until the next start.
A failure outside a log's own cleaning is a bug, and stops the broker as in any background task.

A change of `log.cleaner.*` that the loops have to be made for (their number, their memory) ends
cleanings at their next step and starts the loops anew; rate and backoff hold at once.

Event loop only. `broker.server` runs it.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from broker.throttler import Throttler
from broker.world.clock import Clock
from broker.world.loop_watch import LoopWatch, attributed
from broker.world.turns import wait_for_turn
from broker.world.workers import Hand, WorkerDied, Workers, perform_all
from config.broker_config import BrokerConfig
from storage.cleaner import work as work_in_child
from storage.cleaner.cleaning import Cleaning, clean, request_for
from storage.cleaner.errors import CleaningAborted, Uncleanable
from storage.cleaner.manager import CleanerManagerStatistics, LogToClean, LookStatistics
from storage.cleaner.request import CleanerStats, CleanRequest, MapStep, RewriteStep
from storage.errors import BeingRepaired, StorageError, is_shortage
from storage.log_manager import LogManager
from storage.paths import parent_dir, partition_dir_name
from storage.producers.last_records import last_records_in

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""A child takes some 50 MB, and half a second of a processor to start."""

LEAST_BACKOFF_S: Final = 0.01
"""`log.cleaner.backoff.ms` may be 0, and a loop that never sleeps would starve the others."""

MOST_MAP_BYTES: Final = 2**31 - 1
"""Of one loop, as in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """What loops are made with. Sizes are bytes."""

    threads: int
    dedupe_buffer_size: int
    load_factor: float
    io_buffer_size: int
    message_max_bytes: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> "CleanerSettings":
        """As the broker is configured now."""
        return cls(
            threads=config.log_cleaner_threads,
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            load_factor=config.log_cleaner_io_buffer_load_factor,
            io_buffer_size=config.log_cleaner_io_buffer_size,
            message_max_bytes=config.message_max_bytes,
        )

    @property
    def map_bytes(self) -> int:
        """Of one loop's map."""
        return min(self.dedupe_buffer_size // max(self.threads, 1), MOST_MAP_BYTES)

    @property
    def io_buffer_bytes(self) -> int:
        """Of one loop's read buffer; the write buffer takes as much."""
        return self.io_buffer_size // max(self.threads, 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The last cleaning of a loop."""

    stats: CleanerStats
    seconds: float
    index_seconds: float
    """Of these, how long it took to read the dirty part into the map."""


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
    """See the module."""

    def __init__(
        self,
        log_manager: LogManager,
        config: BrokerConfig,
        *,
        clock: Clock,
        workers: Workers,
        watch: LoopWatch | None = None,
    ) -> None:
        """`watch` hears of steps that hold the loop for long."""
        self.is_enabled = config.log_cleaner_enable
        """False: `run` does nothing, for good."""
        self.settings = CleanerSettings.from_config(config)
        self.backoff_ms = config.log_cleaner_backoff_ms
        self.throttler = Throttler(clock, config.log_cleaner_io_max_bytes_per_second)
        self.log_manager = log_manager
        self.clock = clock
        self.workers = workers
        self._watch = watch or LoopWatch(clock)
        self._looking = trio.Lock()
        self._next_retention = clock.monotonic()
        self._threads: list[CleanerThread] = []
        self._changed = trio.Event()

    # ---- life

    async def run(self) -> None:
        """Until it is cancelled: then cleanings end at their next step."""
        if not self.is_enabled:
            return
        logger.info("Starting the log cleaner")
        while True:
            self._changed = trio.Event()
            self._threads = [CleanerThread(self, number) for number in range(self.settings.threads)]
            async with trio.open_nursery() as nursery:
                for thread in self._threads:
                    nursery.start_soon(self._run, thread, name=thread.name)
                await self._changed.wait()
                logger.info("Shutting down the log cleaner.")
                nursery.cancel_scope.cancel()

    async def _run(self, thread: "CleanerThread") -> None:
        await attributed(thread.run(), self._watch, lambda: thread.name)

    def reconfigure(self, config: BrokerConfig) -> None:
        """The broker's configuration has changed while it runs."""
        if self.throttler.rate != config.log_cleaner_io_max_bytes_per_second:
            self.throttler.rate = config.log_cleaner_io_max_bytes_per_second
            logger.info("Updating logCleanerIoMaxBytesPerSecond: %s", self.throttler.rate)
        self.backoff_ms = config.log_cleaner_backoff_ms
        settings = CleanerSettings.from_config(config)
        if settings != self.settings:
            self.settings = settings
            self._changed.set()

    def statistics(self) -> LogCleanerStatistics:
        """For metrics."""
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
        """The filthiest one; None: there is nothing to clean."""
        manager = self.log_manager.cleaner
        work = manager.grab_filthiest()
        if work is None:
            async with self._looking:
                work = manager.grab_filthiest()  # of what another loop has found meanwhile
                if work is None:
                    for _ in manager.look():
                        await wait_for_turn()
                    work = manager.grab_filthiest()
        return work

    async def apply_retention(self) -> None:
        """To compacted logs, not more often than a loop with nothing to do would."""
        now = self.clock.monotonic()
        if now >= self._next_retention:
            self._next_retention = now + self.backoff_s
            await perform_all(self.workers, self.log_manager.apply_retention_to_compacted())

    @property
    def backoff_s(self) -> float:
        """Between two rounds of a loop that found nothing to clean."""
        return max(self.backoff_ms / 1000, LEAST_BACKOFF_S)


class CleanerThread:
    """One loop: Kafka's `CleanerThread`."""

    def __init__(self, cleaner: LogCleaner, number: int) -> None:
        self.name = f"kafka-log-cleaner-thread-{number}"
        self.last: Cleaned | None = None
        self.look = LookStatistics()
        """What was found when a log was taken last."""
        self.has_failed = False
        """It ended by a bug."""
        self._cleaner = cleaner
        self._number = number
        self._manager = cleaner.log_manager.cleaner
        self._hand: Hand | None = None
        self._used = 0.0

    async def run(self) -> None:
        """For ever."""
        try:
            while True:
                if not await self._clean_filthiest():
                    self._let_idle_hand_go()
                    await self._cleaner.clock.sleep(self._cleaner.backoff_s)
        except Exception:
            self.has_failed = True
            raise
        finally:
            self._let_hand_go()

    async def _clean_filthiest(self) -> bool:
        """Whether a log is cleaner now than it was."""
        work = await self._cleaner.next_log()
        was_cleaned = False
        if work is not None:
            self.look = self._manager.statistics(()).look
            was_cleaned = await self._clean(work)
        await self._cleaner.apply_retention()
        return was_cleaned

    # ---- the child

    def _hired(self) -> Hand:
        if self._hand is None:
            self._hand = self._cleaner.workers.hire()
        return self._hand

    def _let_idle_hand_go(self) -> None:
        if self._cleaner.clock.monotonic() - self._used >= IDLE_S:
            self._let_hand_go()

    def _let_hand_go(self) -> None:
        hand, self._hand = self._hand, None
        if hand is not None:
            hand.close()

    # ---- one log

    async def _clean(self, work: LogToClean) -> bool:
        """Whether it got any further. The letters are those of the module."""
        log, partition = work.log, work.log.topic_partition
        end_offset: int | None = None
        try:
            cleaned = await self._carry_out(work)
        except CleaningAborted as error:  # a
            logger.info("The cleaning of %s was aborted: %s", partition, error)
        except (StorageError, BeingRepaired) as error:  # b: whoever met it has reported it
            logger.info("%s cannot be cleaned now: %s", partition, error)
        except WorkerDied as error:  # c
            logger.error("The process that cleaned %s has ended, it is tried again: %s", log, error)
        except OSError as error:  # a, b, c
            self._disk_failed(work, error)
        except Uncleanable as error:  # d
            self._manager.mark_uncleanable(log, str(error))
        except Exception as error:
            if self._manager.is_wanted(work):
                logger.exception("Unexpected exception thrown when cleaning log %s.", log)
                self._manager.mark_uncleanable(log, f"{type(error).__name__}: {error}")
        else:
            end_offset = cleaned.stats.end_offset
            self.last = cleaned
            tell(self._number, work, cleaned, self.look)
        finally:
            self._used = self._cleaner.clock.monotonic()
            self._manager.done_cleaning(work, end_offset)
        return end_offset is not None and end_offset > work.due.extent.first_dirty_offset

    def _disk_failed(self, work: LogToClean, error: OSError) -> None:
        """In the child, or a job: a log that has gone may be looked for in vain."""
        if not self._manager.is_wanted(work):
            logger.info("The cleaning of %s was aborted: %s", work.log, error)
        elif is_shortage(error):
            logger.error("%s is cleaned later: %s", work.log, error)
        else:
            logger.error("Failed to clean up log for %s: %s", work.log, error)
            self._cleaner.log_manager.report_failure(parent_dir(work.log.dir), error)

    async def _carry_out(self, work: LogToClean) -> Cleaned:
        """Raises what `_clean` catches."""
        logger.info("Beginning cleaning of log %s", _name(work))
        cleaning = clean(work.log, await self._request(work))
        hand = self._hired()
        try:
            return await self._drive(work, cleaning, hand)
        except Exception:
            # What the child holds, the map above all, it would hold until the next cleaning.
            with suppress(WorkerDied):
                await hand.call(work_in_child.end)
            raise
        finally:
            cleaning.close()

    async def _drive(self, work: LogToClean, cleaning: Cleaning, hand: Hand) -> Cleaned:
        clock = self._cleaner.clock
        began = index_done = clock.monotonic()
        try:
            step = next(cleaning)
            while True:
                try:
                    result = await hand.call(step.function, *step.args)
                    if isinstance(result, MapStep):
                        index_done = clock.monotonic()
                    await self._throttle(result)
                    if not self._manager.is_wanted(work):
                        raise CleaningAborted("it is not wanted any more")
                except Exception as error:  # noqa: BLE001 - whatever it is, the cleaning decides
                    step = cleaning.throw(error)
                else:
                    step = cleaning.send(result)
        except StopIteration as end:
            stats: CleanerStats = end.value
            return Cleaned(
                stats=stats,
                seconds=clock.monotonic() - began,
                index_seconds=index_done - began,
            )

    async def _request(self, work: LogToClean) -> CleanRequest:
        extent, settings, log = work.due.extent, self._cleaner.settings, work.log
        image = log.producers.image()
        values = (image, log.segments.first.base_offset, extent.first_uncleanable_offset)
        if image.is_large:
            producers = await self._cleaner.workers.in_thread(last_records_in, *values)
            if not self._manager.is_wanted(work):
                raise CleaningAborted("it is not wanted any more")
        else:
            producers = last_records_in(*values)
        return request_for(
            log,
            extent.first_dirty_offset,
            extent.first_uncleanable_offset,
            now_ms=self._cleaner.clock.wall_ms(),
            map_bytes=settings.map_bytes,
            io_buffer_bytes=settings.io_buffer_bytes,
            load_factor=settings.load_factor,
            max_message_bytes=settings.message_max_bytes,
            active_producers=producers,
        )

    async def _throttle(self, result: object) -> None:
        """What was read and what was written counts, as in Kafka (S-CMP-12)."""
        steps = result if isinstance(result, tuple) else (result,)
        moved = 0
        for step in steps:
            if isinstance(step, MapStep):
                moved += step.read_bytes
            elif isinstance(step, RewriteStep):
                moved += step.read_bytes + step.written_bytes
        await self._cleaner.throttler.throttle(moved)


def tell(number: int, work: LogToClean, cleaned: Cleaned, look: LookStatistics) -> None:
    """What a cleaning has come to, in the lines of Kafka's cleaner."""
    stats, first = cleaned.stats, work.due.extent.first_dirty_offset
    rewriting = cleaned.seconds - cleaned.index_seconds
    read, mapped = _mb(stats.bytes_read), _mb(stats.map_bytes_read)
    lines = (
        f"Log cleaner thread {number} cleaned log {_name(work)} "
        f"(dirty section = [{first}, {stats.end_offset}])",
        f"{read:,.1f} MB of log processed in {cleaned.seconds:,.1f} seconds "
        f"({_rate(read, cleaned.seconds):,.1f} MB/sec).",
        f"Indexed {mapped:,.1f} MB in {cleaned.index_seconds:.1f} seconds "
        f"({_rate(mapped, cleaned.index_seconds):,.1f} Mb/sec, "
        f"{_percent(cleaned.index_seconds, cleaned.seconds):.1f}% of total time)",
        f"Buffer utilization: {100 * stats.map_utilization:.1f}%",
        f"Cleaned {read:,.1f} MB in {rewriting:.1f} seconds "
        f"({_rate(read, rewriting):,.1f} Mb/sec, "
        f"{_percent(rewriting, cleaned.seconds):.1f}% of total time)",
        f"Start size: {read:,.1f} MB ({stats.messages_read:,} messages)",
        f"End size: {_mb(stats.bytes_written):,.1f} MB ({stats.messages_written:,} messages)",
        f"{100 - _percent(stats.bytes_written, stats.bytes_read):.1f}% size reduction "
        f"({100 - _percent(stats.messages_written, stats.messages_read):.1f}% fewer messages)",
    )
    logger.info("\n%s", "\n".join("\t" + line for line in lines))
    if look.delayed:
        logger.info(
            "\tCleanable partitions: %d, Delayed partitions: %d, max delay: %d",
            look.cleanable,
            look.delayed,
            look.max_delay_ms,
        )
    if stats.invalid_messages_read:
        logger.warning(
            "\tFound %d invalid messages during compaction.", stats.invalid_messages_read
        )


def _name(work: LogToClean) -> str:
    return partition_dir_name(work.log.topic_partition)


def _mb(size: int) -> float:
    return size / 2**20


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
