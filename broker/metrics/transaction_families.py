"""Metric families of the transaction coordinator's `statistics()`.

Numbers for which Kafka has an MBean have the JMX exporter's names: load times
(`transaction-coordinator-metrics`), failed verifications (`AddPartitionsToTxnManager`). Kafka does
not measure the other numbers here. Producer ids and late transactions belong to partitions, and are
in `broker.metrics.families`.
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.coordinator.transaction.settings import TransactionStatistics
from broker.metrics.samples import Family, labelled

_STATES = "kafka_coordinator_transaction_transactionstatemanager_"
_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_LOADS = "kafka_server_transaction_coordinator_metrics_"
_VERIFICATIONS = "kafka_server_addpartitionstotxnmanager_"


def transaction_families(statistics: TransactionStatistics) -> Iterator[Family]:
    """Yield the families of the coordinator."""
    loading = statistics.loading
    average = loading.load_time_total_ms / loading.loads if loading.loads else 0.0
    markers, counters = statistics.markers, statistics.counters
    for name, text, value in (
        (_LOADS + "partition_load_time_max", "Milliseconds: longest", loading.load_time_max_ms),
        (_LOADS + "partition_load_time_avg", "Milliseconds: mean", average),
        (_MARKERS + "transactions", "Transactions that get their markers", markers.transactions),
    ):
        yield GaugeMetricFamily(name, text, value=value)
    for name, text, value in (
        (_LOADS + "loaded_records", "Records replayed by loads", loading.loaded_records),
        (_STATES + "append_errors", "Changes that could not be written", counters.failed_changes),
        (_STATES + "timed_out", "Transactions aborted for their age", counters.timed_out),
        (_STATES + "expired", "Transactional ids forgotten", counters.expired_ids),
        (_VERIFICATIONS + "verification", "Partitions verified", counters.verifications),
        (
            _VERIFICATIONS + "verificationfailure",
            "Partitions that were not in the transaction, or could not be verified",
            counters.failed_verifications,
        ),
        (_MARKERS + "written", "Markers written", markers.written),
        (_MARKERS + "retried", "Markers that had to be tried again", markers.retried),
    ):
        yield CounterMetricFamily(name, text, value=value)
    text = "Partitions of __transaction_state led here"
    yield labelled(GaugeMetricFamily, _STATES + "partitions", text, "state", loading.partitions)
    text, ids = "By their state", statistics.transactional_ids
    yield labelled(GaugeMetricFamily, _STATES + "transactionalids", text, "state", ids)
    text = "Durable changes, by the state reached"
    changes = {state.label: count for state, count in counters.changes.items()}
    yield labelled(CounterMetricFamily, _STATES + "changes", text, "state", changes)
