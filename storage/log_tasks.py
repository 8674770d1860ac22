"""The names and periods of the log manager's background work.

The names are those of Kafka's scheduler, except `repair-indexes`. First runs are
`log.initial.task.delay.ms` (30 s) after start-up (S-TIME-1); tasks with a period below run first
after that period.
"""

from typing import Final

RETENTION: Final = "kafka-log-retention"
FLUSHER: Final = "kafka-log-flusher"
RECOVERY_POINT_CHECKPOINT: Final = "kafka-recovery-point-checkpoint"
LOG_START_CHECKPOINT: Final = "kafka-log-start-offset-checkpoint"
DELETE_LOGS: Final = "kafka-delete-logs"
PRODUCER_EXPIRATION: Final = "PeriodicProducerExpirationCheck"
FLUSH_ROLLED: Final = "flush-log"

FLUSH_ROLLED_PERIOD_MS: Final = 1000
"""Kafka flushes a segment as soon as it was rolled; here a task does within a second."""

REPAIR_INDEXES: Final = "repair-indexes"

REPAIR_INDEXES_PERIOD_MS: Final = 1000
"""An upper bound: whoever finds a damaged index wakes the task at once."""
