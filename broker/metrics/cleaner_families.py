"""Metric families of the log cleaner's `statistics()`.

They are Kafka's gauges of `kafka.log:type=LogCleaner` and `kafka.log:type=LogCleanerManager`, under
the names that the JMX exporter gives them. As in Kafka there are none if `log.cleaner.enable` is
false.
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from broker.cleaner.log_cleaner import LogCleanerStatistics
from broker.metrics.samples import Family, labelled

_CLEANER = "kafka_log_logcleaner_"
_MANAGER = "kafka_log_logcleanermanager_"


def cleaner_families(statistics: LogCleanerStatistics | None) -> Iterator[Family]:
    """Yield the families; none if there are no statistics."""
    if statistics is None:
        return
    manager = statistics.manager
    for name, text, value in (
        (
            _CLEANER + "max_buffer_utilization_percent",
            "How full the fullest map of keys was in the last cleanings",
            statistics.max_buffer_utilization_percent,
        ),
        (
            _CLEANER + "cleaner_recopy_percent",
            "The share of the bytes read that the last cleanings wrote",
            statistics.cleaner_recopy_percent,
        ),
        (
            _CLEANER + "max_clean_time_secs",
            "Seconds: the longest of the last cleanings",
            statistics.max_clean_time_s,
        ),
        (
            _CLEANER + "max_compaction_delay_secs",
            "Seconds by which max.compaction.lag.ms was exceeded",
            statistics.max_compaction_delay_s,
        ),
        (
            _CLEANER + "deadthreadcount",
            "Cleaner threads that ended by a bug",
            statistics.dead_thread_count,
        ),
        (
            _MANAGER + "max_dirty_percent",
            "The dirty share of the dirtiest log",
            manager.max_dirty_percent,
        ),
        (
            _MANAGER + "time_since_last_run_ms",
            "Milliseconds since all logs were looked at",
            manager.time_since_last_run_ms,
        ),
    ):
        yield GaugeMetricFamily(name, text, value=value)
    for name, text, values in (
        (
            "uncleanable_partitions_count",
            "Partitions that the cleaner has given up",
            manager.uncleanable_partitions,
        ),
        (
            "uncleanable_bytes",
            "Bytes to clean in the partitions that the cleaner has given up",
            manager.uncleanable_bytes,
        ),
    ):
        yield labelled(GaugeMetricFamily, _MANAGER + name, text, "logDirectory", values)
