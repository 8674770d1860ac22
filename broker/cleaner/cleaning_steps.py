"""One cleaning with its child process: its rate, its end when it is not wanted, and its result.

A module of its own because its imports take some tens of milliseconds: `broker.cleaner.log_cleaner`
imports it when there is something to clean, so that a start need not.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from broker.cleaner.settings import CleanerSettings
from broker.world.clock import TaskClock
from broker.world.workers import DedicatedWorker, WorkerDied
from storage.cleaner import work as work_in_child
from storage.cleaner.cleaning import (
    STEP_BYTES,
    clean,
    closed_segments,
    describe,
    request_for,
)
from storage.cleaner.errors import CleaningAborted
from storage.cleaner.manager import LogToClean, LookStatistics
from storage.cleaner.request import CleanerStats, CleanRequest, MapStep, RewriteStep
from storage.paths import partition_dir_name
from storage.producers.last_records import last_records_in
from storage.waits import Call, Work, call

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The result of one cleaning."""

    stats: CleanerStats
    seconds: float
    index_seconds: float
    """The part of `seconds` that was spent reading the dirty section into the offset map."""

    def tell(self, number: int, work: LogToClean, look: LookStatistics) -> None:
        """Log the result in the lines of Kafka's cleaner."""
        stats, first = self.stats, work.due.extent.first_dirty_offset
        rewriting = self.seconds - self.index_seconds
        read, mapped = _mb(stats.bytes_read), _mb(stats.map_bytes_read)
        lines = (
            f"Log cleaner thread {number} cleaned log {_name(work)} "
            f"(dirty section = [{first}, {stats.end_offset}])",
            f"{read:,.1f} MB of log processed in {self.seconds:,.1f} seconds "
            f"({_rate(read, self.seconds):,.1f} MB/sec).",
            f"Indexed {mapped:,.1f} MB in {self.index_seconds:.1f} seconds "
            f"({_rate(mapped, self.index_seconds):,.1f} Mb/sec, "
            f"{_percent(self.index_seconds, self.seconds):.1f}% of total time)",
            f"Buffer utilization: {100 * stats.map_utilization:.1f}%",
            f"Cleaned {read:,.1f} MB in {rewriting:.1f} seconds "
            f"({_rate(read, rewriting):,.1f} Mb/sec, "
            f"{_percent(rewriting, self.seconds):.1f}% of total time)",
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


class RunningCleaning:
    """A cleaning and the child process that does it. Raises the errors a to d of `log_cleaner`."""

    def __init__(
        self,
        work: LogToClean,
        *,
        worker: DedicatedWorker,
        clock: TaskClock,
        throttle: Callable[[float], Work[None]],
        is_wanted: Callable[[], bool],
        hash_seed: int,
    ) -> None:
        """`throttle` is awaited with each step's bytes; `is_wanted` is called between steps."""
        self._hash_seed = hash_seed
        self._work = work
        self._worker = worker
        self._clock = clock
        self._throttle = throttle
        self._is_wanted = is_wanted
        self._index_done = 0.0

    async def carry_out(self, settings: CleanerSettings, *, most_a_step: int) -> Cleaned:
        """Clean the log; no step reads more than `most_a_step` bytes.

        Cancellation takes effect between steps.
        """
        logger.info("Beginning cleaning of log %s", _name(self._work))
        request = await self._request(settings)
        began = self._index_done = self._clock.monotonic()
        step_bytes = min(STEP_BYTES, most_a_step)
        try:
            stats = await clean(self._work.log, request, self._step, step_bytes=step_bytes)
        except Exception:
            # Otherwise the child would keep its state, above all the map, until the next cleaning.
            with suppress(WorkerDied):
                await Call(self._worker, work_in_child.end, ())
            raise
        return Cleaned(
            stats=stats,
            seconds=self._clock.monotonic() - began,
            index_seconds=self._index_done - began,
        )

    async def _step(self, function: Callable[..., Any], *args: Any) -> Any:
        result = await Call(self._worker, function, args)
        if isinstance(result, MapStep):
            self._index_done = self._clock.monotonic()
        await self._throttle(_moved(result))
        self._expect_wanted()
        return result

    def _expect_wanted(self) -> None:
        if not self._is_wanted():
            raise CleaningAborted("it is not wanted any more")

    async def _request(self, settings: CleanerSettings) -> CleanRequest:
        extent, log = self._work.due.extent, self._work.log
        image = log.producers.image()
        values = (image, log.segments.first.base_offset, extent.first_uncleanable_offset)
        if image.is_large:
            producers = await call(last_records_in, *values)
            self._expect_wanted()
        else:
            producers = last_records_in(*values)
        # In a thread: asking the disk about thousands of segments takes tens of milliseconds.
        places = closed_segments(log, extent.first_uncleanable_offset)
        where = log.store.fs, log.dir, places
        sources = await call(describe, *where)
        self._expect_wanted()
        return request_for(
            log,
            extent.first_dirty_offset,
            extent.first_uncleanable_offset,
            now_ms=self._clock.wall_ms(),
            map_bytes=settings.map_bytes,
            io_buffer_bytes=settings.io_buffer_bytes,
            load_factor=settings.load_factor,
            hash_seed=self._hash_seed,
            active_producers=producers,
            sources=sources,
        )


def _moved(result: object) -> int:
    """The bytes that a step read plus those that it wrote, which Kafka throttles (S-CMP-12)."""
    steps = result if isinstance(result, tuple) else (result,)
    moved = 0
    for step in steps:
        if isinstance(step, MapStep):
            moved += step.read_bytes
        elif isinstance(step, RewriteStep):
            moved += step.read_bytes + step.written_bytes
    return moved


def _name(work: LogToClean) -> str:
    return partition_dir_name(work.log.topic_partition)


def _mb(size: int) -> float:
    return size / 2**20


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
