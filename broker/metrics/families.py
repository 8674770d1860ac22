"""Metric families of the parts' `statistics()`.

The names are those that the JMX exporter's usual rules for Kafka give to Kafka's MBeans
(`kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec` becomes
`kafka_server_brokertopicmetrics_messagesin_total`), so Kafka dashboards work unchanged. Business
code counts in plain integers and does not know Prometheus; statistics are read only at a scrape.
Families with samples for each topic, partition or group let others run after each of these.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
)

from broker.background import TaskStatistics
from broker.cleaner.log_cleaner import LogCleanerStatistics
from broker.cluster.controller_statistics import ControllerStatistics
from broker.cluster.image import BrokerImage, TopicImage
from broker.cluster.leadership import ElectionStatistics
from broker.coordinator.group.statistics import GroupOffsets, GroupStatistics
from broker.coordinator.transaction.settings import TransactionStatistics
from broker.deadlines import DeadlinesStatistics
from broker.metrics.access_families import access_families
from broker.metrics.authentication_families import authentication_families
from broker.metrics.cleaner_families import cleaner_families
from broker.metrics.group_families import HighWatermark, group_families, lag_families
from broker.metrics.lines import Lines
from broker.metrics.partition_families import cluster_families, log_families, partition_families
from broker.metrics.quota_families import quota_families
from broker.metrics.recent import Recent
from broker.metrics.replication_families import connection_families, replication_families
from broker.metrics.request_families import request_families
from broker.metrics.samples import Family, labelled, summary, twice
from broker.metrics.socket_families import socket_families
from broker.metrics.topic_families import topic_families
from broker.metrics.transaction_families import transaction_families
from broker.network.request_services import RequestStatistics
from broker.network.socket_server import SocketServerStatistics
from broker.peers.traffic import PeerTraffic
from broker.quotas.quotas import Quotas
from broker.replication.batch_opening import OpeningStatistics
from broker.replication.fetch_session import FetchSessionStatistics
from broker.replication.partition import Partition
from broker.replication.replica_manager import ReplicaManagerStatistics
from broker.security.authentication.statistics import AuthenticationStatistics
from broker.world.loop_watch import LoopStatistics
from storage.log.log import Log
from storage.log_manager import LogManagerStatistics
from storage.waits import Work

if TYPE_CHECKING:
    from broker.controller.statistics import ClusterControllerStatistics
    from broker.security.acl_authorizer import AuthorizerStatistics
    from broker.zookeeper.zookeeper_store import ZooKeeperStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of all numbers; a function returns its part's statistics as of the call."""

    broker_state: Callable[[], int]
    cluster_id: str
    broker_id: int
    replicas: Callable[[], Work[ReplicaManagerStatistics]]
    logs: Callable[[], Iterable[Log]]
    log_manager: Callable[[], LogManagerStatistics]
    cleaner: Callable[[], LogCleanerStatistics | None]
    """None if the cleaner is disabled."""
    partitions: Callable[[], Iterable[Partition]]
    topics: Callable[[], Iterable[TopicImage]]
    brokers: Callable[[], Iterable[BrokerImage]]
    controller: Callable[[], Work[ControllerStatistics]]
    groups: Callable[[], Work[GroupStatistics]]
    group_offsets: Callable[[], Iterable[GroupOffsets]]
    high_watermark: HighWatermark
    transactions: Callable[[], Work[TransactionStatistics]]
    fetch_sessions: Callable[[], FetchSessionStatistics]
    sockets: Callable[[], SocketServerStatistics]
    authentication: Callable[[], Mapping[str, AuthenticationStatistics]]
    """By listener that authenticates."""
    requests: Callable[[], RequestStatistics]
    background: Callable[[], Mapping[str, TaskStatistics]]
    """By task."""
    deadlines: Callable[[], DeadlinesStatistics]
    opening: Callable[[], OpeningStatistics]
    quotas: Quotas
    access: "Callable[[], AuthorizerStatistics | None]"
    """None without an authorizer."""
    loop: Callable[[], LoopStatistics]
    disk: Callable[[], tuple[int, int]]
    """(read, written): bytes from and to disks by this process."""
    recent: Recent
    cluster_controller: "Callable[[], ClusterControllerStatistics] | None" = None
    """None on a broker that stands alone."""
    zookeeper: "Callable[[], ZooKeeperStatistics] | None" = None
    """None on a broker that stands alone."""
    peers: Mapping[tuple[str, int], PeerTraffic] = field(default_factory=dict)
    """By client id and broker; empty on a broker that stands alone."""


async def all_families(sources: Sources) -> list[Family | Lines]:
    """Return every family."""
    state = await sources.controller()
    replicas = await sources.replicas()
    return [
        *_server(sources),
        *_controller(state),
        *_cluster_controller(sources),
        *_zookeeper(sources),
        *(await topic_families(replicas)),
        *_replica_manager(replicas, state.elections),
        *(await replication_families(replicas.fetching, sources.recent)),
        *(connection_families(sources.peers) if sources.peers else ()),
        *(await log_families(sources.logs())),
        *_log_manager(sources.log_manager()),
        *(await partition_families(sources.partitions())),
        *(await cluster_families(sources.topics(), sources.brokers())),
        *cleaner_families(sources.cleaner()),
        *(await request_families(sources.requests(), sources.recent)),
        *_opening(sources.opening()),
        *socket_families(sources.sockets(), sources.loop(), sources.recent),
        *authentication_families(sources.authentication(), sources.sockets(), sources.recent),
        *group_families(await sources.groups()),
        *(await lag_families(sources.group_offsets(), sources.high_watermark)),
        *transaction_families(await sources.transactions()),
        *(await quota_families(sources.quotas)),
        *access_families(sources.access(), sources.recent),
        *_background(sources),
    ]


def gauge(name: str, text: str, value: float) -> Family:
    """Return a gauge family with one sample and no labels."""
    return GaugeMetricFamily(name, text, value=value)


def _server(sources: Sources) -> Iterator[Family]:
    yield gauge(
        "kafka_server_kafkaserver_brokerstate",
        "0 not running, 1 starting, 2 recovering, 3 running, 6 and 7 stopping",
        int(sources.broker_state()),
    )
    ids = GaugeMetricFamily(
        "kafka_server_kafkaserver_clusterid",
        "Always 1; the ids are labels",
        labels=("clusterid", "broker"),
    )
    ids.add_metric((sources.cluster_id, str(sources.broker_id)), 1)
    yield ids
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
    yield from twice(
        prefix + "incrementalfetchsessionevictions",
        "Fetch sessions evicted for others",
        sessions.evictions,
    )
    prefix = "kafka_server_kafkaserver_linux_disk_"
    for name, value in zip(("read_bytes", "write_bytes"), sources.disk(), strict=True):
        yield gauge(prefix + name, "Bytes of this process, as the kernel counts them", value)


def _controller(state: ControllerStatistics) -> Iterator[Family]:
    prefix = "kafka_controller_kafkacontroller_"
    for name, text, value in (
        (
            "activecontrollercount",
            "1: this broker is the controller",
            state.active_controller_count,
        ),
        ("globaltopiccount", "Topics", state.global_topic_count),
        ("globalpartitioncount", "Partitions", state.global_partition_count),
        (
            "offlinepartitionscount",
            "Partitions without a leader",
            state.offline_partitions_count,
        ),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another replica leads than the first",
            state.preferred_replica_imbalance_count,
        ),
        (
            "topicstodeletecount",
            "Topics whose deletion is not finished",
            state.topics_to_delete_count,
        ),
    ):
        yield gauge(prefix + name, text, value)
    yield from twice(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Partitions that this broker leads since its start, though it was not in their ISR",
        state.elections.unclean,
    )


def _cluster_controller(sources: Sources) -> Iterator[Family]:
    if sources.cluster_controller is not None:
        from broker.metrics.controller_families import controller_families

        yield from controller_families(sources.cluster_controller())


def _zookeeper(sources: Sources) -> Iterator[Family]:
    if sources.zookeeper is not None:
        from broker.metrics.zookeeper_families import zookeeper_families

        yield from zookeeper_families(sources.zookeeper())


def _replica_manager(
    statistics: ReplicaManagerStatistics, elections: ElectionStatistics
) -> Iterator[Family]:
    prefix = "kafka_server_replicamanager_"
    for name, text, value in (
        ("partitioncount", "Partitions on this broker", statistics.partition_count),
        ("leadercount", "Partitions that this broker leads", statistics.leader_count),
        (
            "offlinereplicacount",
            "Partitions on a log directory that failed",
            statistics.offline_replica_count,
        ),
        (
            "underreplicatedpartitions",
            "Partitions with fewer replicas in the ISR than they have without those being added",
            statistics.under_replicated_partitions,
        ),
        (
            "underminisrpartitioncount",
            "Partitions with fewer replicas in the ISR than min.insync.replicas",
            statistics.under_min_isr_partition_count,
        ),
        (
            "atminisrpartitioncount",
            "Partitions with as many replicas in the ISR as min.insync.replicas",
            statistics.at_min_isr_partition_count,
        ),
        (
            "reassigningpartitions",
            "Partitions led here whose replicas are being changed",
            statistics.reassigning_partitions,
        ),
        ("produceridcount", "Producers that partitions remember", statistics.producer_id_count),
        (
            "partitionswithlatetransactionscount",
            "Partitions with a transaction that should have been over",
            statistics.partitions_with_late_transactions_count,
        ),
    ):
        yield gauge(prefix + name, text, value)
    yield from twice(
        prefix + "isrshrinks",
        "Partitions whose ISR this broker made smaller",
        elections.isr_shrinks + statistics.isr.shrinks,
    )
    yield from twice(
        prefix + "isrexpands",
        "Partitions whose ISR this broker made larger",
        elections.isr_expands + statistics.isr.expands,
    )
    yield from twice(
        prefix + "failedisrupdates",
        "Changes of an ISR that the controller did not make",
        statistics.isr.failed_updates,
    )
    purgatories = {"Produce": statistics.produce_purgatory, "Fetch": statistics.fetch_purgatory}
    prefix = "kafka_server_delayedoperationpurgatory_"
    for name, attribute in (("purgatorysize", "watchers"), ("numdelayedoperations", "parked")):
        yield labelled(
            GaugeMetricFamily,
            prefix + name,
            f"Parked requests: {attribute}",
            "delayedOperation",
            {kind: getattr(found, attribute) for kind, found in purgatories.items()},
        )
    yield labelled(
        CounterMetricFamily,
        "kafka_server_delayedoperationmetrics_expires",
        "Parked requests that ended by their timeout",
        "delayedOperation",
        {kind: found.expired for kind, found in purgatories.items()},
    )


def _log_manager(manager: LogManagerStatistics) -> Iterator[Family]:
    yield summary(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Milliseconds that a sync of a log took",
        {"": manager.flushes},
        label=None,
    )
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
    yield labelled(
        GaugeMetricFamily,
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a log directory that failed",
        "logDirectory",
        dict.fromkeys(manager.live_dirs, 0) | dict.fromkeys(manager.offline_dirs, 1),
    )
    yield labelled(
        CounterMetricFamily,
        "kafka_log_logmanager_damagedindexes",
        "Indexes that did not say what their log holds, and were rebuilt from it",
        "kind",
        dict(sorted(manager.damaged_indexes.items())),
    )


def _opening(statistics: OpeningStatistics) -> Iterator[Family]:
    prefix = "kafka_server_batchopening_"
    yield labelled(
        CounterMetricFamily,
        prefix + "opened",
        "Produced batches opened beside the event loop, by where",
        "where",
        {"thread": statistics.in_threads, "process": statistics.in_processes},
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


def _background(sources: Sources) -> Iterator[Family]:
    tasks = sources.background()
    prefix = "kafka_server_backgroundtask_"
    for name in ("runs", "failures", "seconds"):
        yield labelled(
            CounterMetricFamily,
            prefix + name,
            f"Background tasks: {name}",
            "task",
            {task: getattr(found, name) for task, found in tasks.items()},
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
        prefix + "longturns_seconds", "Seconds of turns above 50 ms", value=loop.long_turns_s
    )
