"""The log manager's background work, as a table: name, when first, how often, what.

The names are those of Kafka's scheduler. All first runs are `log.initial.task.delay.ms` (30 s)
after start-up (S-TIME-1). `broker.background` runs the table; a task that throws is logged and runs
again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

RETENTION: Final = "kafka-log-retention"
FLUSHER: Final = "kafka-log-flusher"
RECOVERY_POINT_CHECKPOINT: Final = "kafka-recovery-point-checkpoint"
LOG_START_CHECKPOINT: Final = "kafka-log-start-offset-checkpoint"
DELETE_LOGS: Final = "kafka-delete-logs"
PRODUCER_EXPIRATION: Final = "PeriodicProducerExpirationCheck"
FLUSH_ROLLED: Final = "flush-log"

FLUSH_ROLLED_PERIOD_MS: Final = 1000
"""Kafka flushes a segment as soon as it was rolled; a second later serves the same end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row. Times are milliseconds."""

    name: str
    initial_delay_ms: int
    period_ms: int
    """From the start of one run to the next; ignored when `run` says when it wants to be called."""
    run: Callable[[], int | None]
    """Returns the milliseconds until its next run, or None for `period_ms`."""
    blocking: bool
    """True: may wait for the disk and is safe to run in a thread, beside the owner of the logs.
    False: changes what appends and reads rely on; it must run where they do (and is quick)."""
