"""What the parts' `statistics()` say, as metric families.

The names are what the JMX exporter's usual rules for Kafka make of Kafka's MBeans
(`kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec` becomes
`kafka_server_brokertopicmetrics_messagesin_total`), so dashboards work as they are. Business code
counts in plain integers and does not know Prometheus; this is read at a scrape only. Runs on the
event loop, in short steps: where there is something per topic or partition, None stands between the
families, so that others have their turn.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from broker.metrics.cleaner_families import cleaner_families
from broker.metrics.transaction_families import transaction_families

Family = CounterMetricFamily | GaugeMetricFamily | SummaryMetricFamily

SAMPLES_A_STEP = 200
"""Made in one go: about a millisecond."""
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_TOPIC_COUNTERS = {
    "messages_in": "messagesin",
    "bytes_in": "bytesin",
    "bytes_out": "bytesout",
    "bytes_rejected": "bytesrejected",
    "replication_bytes_in": "replicationbytesin",
    "replication_bytes_out": "replicationbytesout",
    "total_produce_requests": "totalproducerequests",
    "total_fetch_requests": "totalfetchrequests",
    "failed_produce_requests": "failedproducerequests",
    "failed_fetch_requests": "failedfetchrequests",
    "produce_message_conversions": "producemessageconversions",
    "fetch_message_conversions": "fetchmessageconversions",
    "invalid_message_crc_records": "invalidmessagecrcrecords",
    "no_key_compacted_topic_records": "nokeycompactedtopicrecords",
    "invalid_offset_or_sequence_records": "invalidoffsetorsequencerecords",
}
_TIMES = {
    "queue_s": "requestqueuetimems",
    "local_s": "localtimems",
    "remote_s": "remotetimems",
    "send_s": "responsesendtimems",
}
_GROUP_STATES = {
    "Empty": "numgroupsempty",
    "PreparingRebalance": "numgroupspreparingrebalance",
    "CompletingRebalance": "numgroupscompletingrebalance",
    "Stable": "numgroupsstable",
    "Dead": "numgroupsdead",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the numbers come from: each returns its part's statistics at the moment of the call."""

    broker_state: Callable[[], int]
    cluster_id: str
    broker_id: int
    replicas: Callable[[], Generator[None, None, Any]]
    """`ReplicaManagerStatistics`, in steps."""
    logs: Callable[[], Iterable[Any]]
    """Every open log; each has `topic_partition` and `statistics()`."""
    log_manager: Callable[[], Any]
    """`LogManagerStatistics`"""
    cleaner: Callable[[], Any]
    """`LogCleanerStatistics`; None where there is none."""
    controller: Callable[[], Any]
    """`ControllerStatistics`"""
    groups: Callable[[], Any]
    """`GroupStatistics`"""
    transactions: Callable[[], Any]
    """`TransactionStatistics`"""
    fetch_sessions: Callable[[], Any]
    """`FetchSessionStatistics`"""
    sockets: Callable[[], Any]
    """`SocketServerStatistics`"""
    channel: Callable[[], Any]
    """`RequestChannelStatistics`"""
    background: Callable[[], Any]
    """`BackgroundStatistics`"""
    deadlines: Callable[[], Any]
    """`DeadlinesStatistics`"""
    opening: Callable[[], Any]
    """`OpeningStatistics`"""
    loop: Callable[[], Any]
    """`LoopStatistics`"""


def all_families(sources: Sources) -> Iterator[Family | None]:
    """Every family, one after the other; None: others may have their turn."""
    yield from _server(sources)
    yield from _replicas((yield from sources.replicas()))
    yield from _logs(sources)
    yield from cleaner_families(sources.cleaner())
    yield from _requests(sources.channel())
    yield from _opening(sources.opening())
    yield from _sockets(sources.sockets())
    yield from _groups(sources.groups())
    yield from transaction_families(sources.transactions())
    yield from _background(sources)


def gauge(name: str, text: str, value: float) -> Family:
    """A family of one number."""
    return GaugeMetricFamily(name, text, value=value)


def _many(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float]],
    *,
    total: float | None = None,
) -> Iterator[Family | None]:
    """A family with a sample per topic or partition, in steps.

    As the JMX exporter has it, a `total` has no label.
    """
    family = kind(name, text, labels=labels)
    if total is not None:
        family.add_sample(name + "_total", {}, total)
    for count, (values, number) in enumerate(samples, start=1):
        family.add_metric(values, number)
        if count % SAMPLES_A_STEP == 0:
            yield None
    yield family


def _labelled(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float]],
) -> Family:
    family = kind(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _server(sources: Sources) -> Iterator[Family]:
    yield gauge(
        "kafka_server_kafkaserver_brokerstate",
        "0 not running, 1 starting, 2 recovering, 3 running, 6 and 7 stopping",
        int(sources.broker_state()),
    )
    yield _labelled(
        GaugeMetricFamily,
        "kafka_server_kafkaserver_clusterid",
        "Always 1; the ids are labels",
        ("clusterid", "broker"),
        [((sources.cluster_id, str(sources.broker_id)), 1)],
    )
    sessions = sources.fetch_sessions()
    prefix = "kafka_server_fetchsessioncache_"
    yield gauge(
        prefix + "numincrementalfetchsessions", "Incremental fetch sessions", sessions.sessions
    )
    yield gauge(
        prefix + "numincrementalfetchpartitionscached",
        "Partitions in incremental fetch sessions",
        sessions.partitions_cached,
    )
    yield CounterMetricFamily(
        prefix + "incrementalfetchsessionevictions",
        "Fetch sessions evicted for others",
        value=sessions.evictions,
    )
    state = sources.controller()
    prefix = "kafka_controller_kafkacontroller_"
    for attribute in (
        "active_controller_count",
        "global_topic_count",
        "global_partition_count",
        "offline_partitions_count",
        "topics_to_delete_count",
    ):
        name = attribute.replace("_", "")
        yield gauge(prefix + name, attribute.replace("_", " "), getattr(state, attribute))


def _replicas(statistics: Any) -> Iterator[Family | None]:
    prefix = "kafka_server_brokertopicmetrics_"
    for attribute, name in _TOPIC_COUNTERS.items():
        yield from _many(
            CounterMetricFamily,
            prefix + name,
            attribute.replace("_", " "),
            ("topic",),
            (
                ((topic,), getattr(counters, attribute))
                for topic, counters in statistics.topics.items()
            ),
            total=getattr(statistics.all_topics, attribute),
        )
    prefix = "kafka_server_replicamanager_"
    for name, value in (
        ("partitioncount", statistics.partition_count),
        ("leadercount", statistics.leader_count),
        ("offlinereplicacount", statistics.offline_replica_count),
        ("underreplicatedpartitions", statistics.under_replicated_partitions),
        ("underminisrpartitioncount", statistics.under_min_isr_partition_count),
        ("atminisrpartitioncount", statistics.at_min_isr_partition_count),
        ("produceridcount", statistics.producer_id_count),
        (
            "partitionswithlatetransactionscount",
            statistics.partitions_with_late_transactions_count,
        ),
    ):
        yield gauge(prefix + name, f"ReplicaManager {name}", value)
    purgatories = {"Produce": statistics.produce_purgatory, "Fetch": statistics.fetch_purgatory}
    prefix = "kafka_server_delayedoperationpurgatory_"
    for name, attribute in (("purgatorysize", "watchers"), ("numdelayedoperations", "parked")):
        yield _labelled(
            GaugeMetricFamily,
            prefix + name,
            f"Parked requests: {attribute}",
            ("delayedOperation",),
            [((kind,), getattr(found, attribute)) for kind, found in purgatories.items()],
        )
    yield _labelled(
        CounterMetricFamily,
        "kafka_server_delayedoperationmetrics_expires",
        "Parked requests that ended by their timeout",
        ("delayedOperation",),
        [((kind,), found.expired) for kind, found in purgatories.items()],
    )


def _logs(sources: Sources) -> Iterator[Family | None]:
    found = []
    for count, log in enumerate(list(sources.logs()), start=1):
        topic, partition = log.topic_partition
        found.append(((topic, str(partition)), log.statistics()))
        if count % SAMPLES_A_STEP == 0:
            yield None
    for name, attribute in (
        ("size", "size"),
        ("logendoffset", "log_end_offset"),
        ("logstartoffset", "log_start_offset"),
        ("numlogsegments", "segment_count"),
    ):
        yield from _many(
            GaugeMetricFamily,
            f"kafka_log_log_{name}",
            f"Per partition: {attribute.replace('_', ' ')}",
            ("topic", "partition"),
            ((labels, getattr(statistics, attribute)) for labels, statistics in found),
        )
    manager = sources.log_manager()
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed",
        len(manager.offline_dirs),
    )
    yield gauge(
        "kafka_log_logmanager_opensegments",
        "Segments that have files open",
        manager.open_segments,
    )
    yield CounterMetricFamily(
        "kafka_log_logmanager_closedsegments",
        "Segments that let go of their files for others",
        value=manager.closed_segments,
    )
    yield _labelled(
        GaugeMetricFamily,
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a log directory that failed",
        ("logDirectory",),
        [
            *(((path,), 0) for path in manager.live_dirs),
            *(((path,), 1) for path in manager.offline_dirs),
        ],
    )
    yield _labelled(
        CounterMetricFamily,
        "kafka_log_logmanager_damagedindexes",
        "Indexes that did not say what their log holds, and were rebuilt from it",
        ("kind",),
        (((kind,), count) for kind, count in sorted(manager.damaged_indexes.items())),
    )


def _requests(statistics: Any) -> Iterator[Family]:
    requests = dict(statistics.requests)
    if "Fetch" in requests:
        # Kafka counts fetches under both names; dashboards ask for the second.
        requests["FetchConsumer"] = requests["Fetch"]
    prefix = "kafka_network_requestmetrics_"
    for name, attribute in (("requests", "requests"), ("errors", "errors")):
        yield _labelled(
            CounterMetricFamily,
            prefix + name,
            f"{name} by API",
            ("request",),
            [((api,), getattr(times, attribute)) for api, times in requests.items()],
        )
    total = SummaryMetricFamily(
        prefix + "totaltimems", "Milliseconds from arrival to the sent reply", labels=("request",)
    )
    for api, times in requests.items():
        for quantile in QUANTILES:
            total.add_sample(
                prefix + "totaltimems",
                {"request": api, "quantile": str(quantile)},
                times.quantile_ms(quantile),
            )
        total.add_metric((api,), times.requests, times.total_s * 1000)
    yield total
    for attribute, name in _TIMES.items():
        family = SummaryMetricFamily(prefix + name, f"Milliseconds: {name}", labels=("request",))
        for api, times in requests.items():
            family.add_metric((api,), times.requests, getattr(times, attribute) * 1000)
        yield family
    pool = statistics.pool
    yield gauge("kafka_network_requestchannel_requestqueuesize", "Queued requests", pool.queued)
    prefix = "kafka_server_kafkarequesthandlerpool_"
    yield gauge(prefix + "handlers", "Handler workers", pool.workers)
    yield gauge(prefix + "handlersbusy", "Handler workers at work", pool.busy)
    yield CounterMetricFamily(
        prefix + "busyseconds", "Working time of all handler workers", value=pool.busy_s
    )
    yield gauge(
        prefix + "asides", "Requests in tasks of their own, beside the workers", statistics.asides
    )


def _opening(statistics: Any) -> Iterator[Family]:
    prefix = "kafka_server_batchopening_"
    yield _labelled(
        CounterMetricFamily,
        prefix + "opened",
        "Produced batches opened beside the event loop, by where",
        ("where",),
        [(("thread",), statistics.in_threads), (("process",), statistics.in_processes)],
    )
    yield CounterMetricFamily(
        prefix + "toomuch",
        "Produced batches rejected because opening them is too much work",
        value=statistics.too_much,
    )
    yield gauge(
        prefix + "waiting",
        "Produced batches that wait for the child process, or are in it",
        statistics.waiting,
    )


def _sockets(statistics: Any) -> Iterator[Family]:
    prefix = "kafka_server_socketservermetrics_"
    yield _labelled(
        GaugeMetricFamily,
        prefix + "connection_count",
        "Connections now",
        ("listener",),
        [((name,), count) for name, count in statistics.connections.items()],
    )
    yield CounterMetricFamily(
        prefix + "connection_creation", "Connections accepted", value=statistics.accepted
    )
    yield _labelled(
        CounterMetricFamily,
        prefix + "connection_refused",
        "Connections closed because of a limit",
        ("reason",),
        [((refusal.value,), count) for refusal, count in statistics.refused.items()],
    )
    for name, value in (
        ("expired_connections_killed_count", statistics.idle_closed),
        ("accept_errors", statistics.accept_errors),
        ("cold_reads", statistics.cold_reads),
        ("overdue_connections_killed_count", statistics.overdue_closed),
    ):
        yield CounterMetricFamily(prefix + name, name.replace("_", " "), value=value)
    frames = statistics.frames
    yield gauge(prefix + "incomplete_request_bytes", "Bytes of unfinished requests", frames.held)
    yield gauge(
        prefix + "muted_connections",
        "Connections that are not read, for want of memory",
        frames.waiting,
    )
    buffers = statistics.buffers
    yield gauge(prefix + "memorypoolused", "Bytes of receive buffers in use", buffers.bytes_in_use)
    yield gauge(
        prefix + "memorypoolavailable", "Bytes of receive buffers kept free", buffers.bytes_free
    )
    if statistics.memory is not None:
        pool = "kafka_network_socketserver_memorypool"
        yield gauge(pool + "available", "Bytes left for requests", statistics.memory.available)
        yield gauge(pool + "used", "Bytes that requests take", statistics.memory.used)


def _groups(statistics: Any) -> Iterator[Family]:
    prefix = "kafka_coordinator_group_groupmetadatamanager_"
    yield gauge(prefix + "numgroups", "Groups", sum(statistics.groups.values()))
    counts = {str(state).replace("_", "").lower(): n for state, n in statistics.groups.items()}
    for state, name in _GROUP_STATES.items():
        yield gauge(prefix + name, f"Groups in state {state}", counts.get(state.lower(), 0))
    yield gauge(prefix + "numoffsets", "Committed offsets", statistics.offsets)
    prefix = "kafka_coordinator_group_groupcoordinatormetrics_"
    for name, value in (
        ("offset_commit", statistics.commits),
        ("offset_expiration", statistics.expired_offsets),
        ("offset_deletion", statistics.deleted_offsets),
        ("group_completed_rebalance", statistics.completed_rebalances),
    ):
        yield CounterMetricFamily(prefix + name, name.replace("_", " "), value=value)
    loading = statistics.loading
    yield gauge(
        prefix + "partition_load_time_max",
        "Milliseconds, the longest load",
        loading.load_time_max_ms,
    )


def _background(sources: Sources) -> Iterator[Family]:
    tasks = sources.background().tasks
    prefix = "kafka_server_backgroundtask_"
    for name, attribute in (("runs", "runs"), ("failures", "failures"), ("seconds", "seconds")):
        yield _labelled(
            CounterMetricFamily,
            prefix + name,
            f"Background tasks: {name}",
            ("task",),
            [((task,), getattr(found, attribute)) for task, found in tasks.items()],
        )
    timers = sources.deadlines()
    yield gauge("kafka_server_timers_active", "Timers that wait", timers.active)
    loop = sources.loop()
    prefix = "kafka_server_eventloop_"
    yield gauge(
        prefix + "longestturn_seconds",
        "How long the event loop was held at most in the last minute or two",
        loop.longest_turn_s,
    )
    yield CounterMetricFamily(
        prefix + "longturns", "Turns of the event loop above 50 ms", value=loop.long_turns
    )
    yield CounterMetricFamily(
        prefix + "longturns_seconds", "What they took together", value=loop.long_turns_s
    )
