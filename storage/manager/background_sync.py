"""Syncing the ends of logs in the background, so that a start after a crash has little to read.

A start reads the records above the recovery points that are on the disk. Kafka syncs a segment
when it was rolled, leaves the active one to the operating system, and writes recovery points once a
minute, so its start may have to read whole active segments. Here the end of a log is synced when
nothing was appended for `IDLE_S`, or when it has had unsynced records for `OLD_S`. Recovery points
that have moved are written soon after, so a start has to read only the records of the last seconds.

Logs are synced one after the other: parallel syncs would only make appends wait for the disk.
"""

from dataclasses import dataclass
from typing import Final

from storage.clock import Clock
from storage.log.log import Log
from storage.manager.checkpoints import RECOVERY_POINTS, Checkpoints
from storage.manager.flusher import Flusher
from storage.manager.log_table import LogTable
from storage.paths import parent_dir
from storage.waits import PAUSE

IDLE_S: Final = 2.0
"""Seconds between two checks of all logs; one with no appends between them is synced."""

OLD_S: Final = 10.0
"""Seconds after which a log with steady appends is synced. Not sooner, because each sync writes a
partly filled page, which the next one writes again."""

_LOGS_A_SECOND: Final = 2000
"""Bounds how often recovery points are written: every two seconds, less often above 4,000 logs."""


@dataclass(frozen=True, slots=True)
class _UnsyncedEnd:
    """The unsynced end of a log; `since` is in seconds of the monotonic clock."""

    since: float
    end: int
    """The log end offset at the last check."""


class BackgroundSync:
    """Syncs the ends of all logs of the broker, and has their recovery points written down."""

    def __init__(
        self,
        table: LogTable,
        clock: Clock,
        checkpoints: Checkpoints,
        flusher: Flusher,
    ) -> None:
        self._table = table
        self._clock = clock
        self._checkpoints = checkpoints
        self._flusher = flusher
        self._unsynced: dict[Log, _UnsyncedEnd] = {}
        self._written: dict[Log, tuple[int, int]] = {}
        """`AbortedSums.written_down` of each log when its checkpoint was last begun."""
        self._next_look = 0.0
        self._next_write = 0.0

    async def sync(self) -> None:
        """Check all logs if `IDLE_S` has passed, and sync those that have waited long enough."""
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + IDLE_S
        earlier, self._unsynced = self._unsynced, {}
        for log in self._table.everything():
            if not log.durability.is_synced:
                found, end = earlier.get(log), log.log_end_offset
                if found is not None and (found.end == end or now - found.since >= OLD_S):
                    await self._flusher.settle(log, is_idle=found.end == end)
                    await self._write_down()
                else:
                    self._unsynced[log] = _UnsyncedEnd(now if found is None else found.since, end)
            await PAUSE
        await self._write_down()

    async def _write_down(self) -> None:
        """Write the recovery points of directories where one has moved, or where more is known of
        aborted transactions than was noted; at most every `IDLE_S`."""
        now = self._clock.monotonic()
        if now < self._next_write:
            return
        logs = self._table.everything()
        self._next_write = now + max(IDLE_S, len(logs) / _LOGS_A_SECOND)
        moved: dict[str, None] = {}
        written: dict[Log, tuple[int, int]] = {}
        for log in logs:
            written[log] = now_said = log.aborted_sums.written_down
            if self._written.get(log) != now_said:
                moved[parent_dir(log.dir)] = None
            await PAUSE
        self._written = written
        await self._checkpoints.write(moved, RECOVERY_POINTS)
