"""Sources of the metric families, with a number for each."""

from collections.abc import Callable
from types import SimpleNamespace as Stub
from typing import Any

from broker.background import TaskStatistics
from broker.cleaner.log_cleaner import LogCleanerStatistics
from broker.cluster.controller_statistics import ControllerStatistics
from broker.cluster.image import BrokerImage, TopicImage
from broker.cluster.leadership import ElectionStatistics
from broker.controller.channels import ChannelStatistics
from broker.controller.events import EventQueue
from broker.controller.statistics import ClusterControllerStatistics
from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.statistics import GroupCounters, GroupOffsets, GroupStatistics
from broker.coordinator.runtime.loading import LoadStatistics
from broker.deadlines import DeadlinesStatistics
from broker.metrics.families import Sources
from broker.metrics.recent import Recent
from broker.network.buffers import BufferStatistics
from broker.network.connection_limits import ConnectionRefusal
from broker.network.frame_memory import FrameMemoryStatistics
from broker.network.handler_pool import HandlerPoolStatistics
from broker.network.handshake_refusals import HandshakeRefusal
from broker.network.handshakes import HandshakeStatistics
from broker.network.request_memory import RequestMemoryStatistics
from broker.network.request_metrics import RequestMetrics, note_sent
from broker.network.request_services import RequestStatistics
from broker.network.socket_server import SocketServerStatistics
from broker.peers.traffic import PeerTraffic
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.quotas import Quotas
from broker.replication.batch_opening import OpeningStatistics
from broker.replication.fetch_session import FetchSessionStatistics
from broker.replication.fetching.statistics import FetcherStatistics, FetchingStatistics
from broker.replication.purgatory import PurgatoryStatistics
from broker.replication.replica_manager import ReplicaManagerStatistics
from broker.replication.topic_statistics import TopicStatistics
from broker.security.acl_authorizer import AuthorizerStatistics
from broker.security.authentication.statistics import AuthenticationStatistics
from broker.world.loop_watch import LoopStatistics
from broker.zookeeper.session import SessionState
from broker.zookeeper.zookeeper_store import ZooKeeperStatistics
from config.listener import Listener
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.cleaner.manager import CleanerManagerStatistics, LookStatistics
from storage.distribution import Distribution
from storage.log_manager import LogManagerStatistics
from tests.support.manual_clock import ManualClock
from tests.support.transaction_harness import T0, TransactionHarness


def sources(**changes: Any) -> Sources:
    purgatory = PurgatoryStatistics(
        parked=2, watched_keys=3, watchers=3, completed=4, expired=1, abandoned=0
    )
    flushes = Distribution()
    flushes.note(0.004)
    produce = RequestMetrics("Produce")
    produce.requests = 2
    for seconds in (0.0001, 0.0002):
        produce.note_queue(seconds)
        produce.note_local(0.0004)
    note_sent([produce, produce], [10.0005, 10.001], 10.0, 10.001, 10.002)
    log = Stub(
        topic_partition=TopicPartition("t", 0),
        statistics=lambda: Stub(size=7, log_end_offset=9, log_start_offset=2, segment_count=1),
    )
    values: dict[str, Any] = {
        "broker_state": lambda: 3,
        "cluster_id": "c",
        "broker_id": 1,
        "replicas": lambda: gathered(
            ReplicaManagerStatistics,
            all_topics=TopicStatistics(messages_in=5),
            topics={"t": TopicStatistics(messages_in=4)},
            partition_count=1,
            leader_count=1,
            offline_replica_count=0,
            under_replicated_partitions=0,
            under_min_isr_partition_count=0,
            at_min_isr_partition_count=0,
            producer_id_count=6,
            partitions_with_late_transactions_count=1,
            fetching=FetchingStatistics(
                fetchers=(
                    FetcherStatistics(
                        leader=2, number=0, requests=3, bytes=4, lags={TopicPartition("t", 0): 5}
                    ),
                )
            ),
            produce_purgatory=purgatory,
            fetch_purgatory=purgatory,
        ),
        "logs": lambda: [log],
        "log_manager": lambda: LogManagerStatistics(
            live_dirs=("/a",),
            logs=1,
            logs_to_load=0,
            offline_dirs=("/b",),
            damaged_indexes={"time": 2},
            open_segments=1,
            closed_segments=0,
            flushes=flushes.snapshot(60.0),
        ),
        "cleaner": lambda: LogCleanerStatistics(
            max_buffer_utilization_percent=41,
            cleaner_recopy_percent=42,
            max_clean_time_s=43,
            max_compaction_delay_s=44,
            dead_thread_count=0,
            manager=CleanerManagerStatistics(
                in_progress=0,
                look=LookStatistics(),
                uncleanable_partitions={"/a": 1, "/b": 0},
                uncleanable_bytes={"/a": 45, "/b": 0},
                max_dirty_percent=46,
                time_since_last_run_ms=47,
            ),
        ),
        "partitions": lambda: [led("t", 0, isr=(1,)), led("t", 1, replicas=(2, 1), isr=(1,))],
        "topics": lambda: [TopicImage(name="t", topic_id=b"", partitions={0: None, 1: None})],
        "brokers": lambda: [BrokerImage(broker_id=1, endpoints=(LISTENER,))],
        "controller": controller_statistics,
        "cluster_controller": cluster_controller_statistics,
        "peers": {
            ("broker-1-fetcher-0", 2): PeerTraffic(1, 2, 3, 4, 5),
            ("controller-1", 2): PeerTraffic(1, 1, 6, 7, 8),
            ("broker-1-to-controller", 2): PeerTraffic(),
        },
        "zookeeper": lambda: ZooKeeperStatistics(
            state=SessionState.CONNECTED,
            in_flight=1,
            times_connected=2,
            times_suspended=1,
            times_expired=0,
            latencies=Distribution().snapshot(0.0),
        ),
        "groups": group_statistics,
        "group_offsets": lambda: [
            GroupOffsets(group_id='a "group"', members=2, offsets={"t": committed(3, 9, -1)})
        ],
        "high_watermark": lambda topic, index: (10, 9)[index] if index < 2 else None,
        "transactions": lambda: after_a_transaction().coordinator.statistics(),
        "fetch_sessions": lambda: FetchSessionStatistics(
            sessions=1, partitions_cached=2, evictions=0
        ),
        "sockets": lambda: SocketServerStatistics(
            connections={"PLAINTEXT": 3},
            replying=5,
            accepted={"PLAINTEXT": 4},
            closed={"PLAINTEXT": 1},
            refused={ConnectionRefusal.IP_LIMIT: 1},
            idle_closed=0,
            overdue_closed=0,
            unread_closed=0,
            backlog_bytes=0,
            frames=FrameMemoryStatistics(held=7, waiting=0),
            accept_errors=0,
            cold_reads=0,
            memory=RequestMemoryStatistics(available=90, used=10, muted=0),
            buffers=BufferStatistics(in_use=0, bytes_in_use=0, bytes_free=131072),
            handshakes=HandshakeStatistics(
                under_way=3,
                placed=2,
                waiting=1,
                computing=1,
                succeeded={"PLAINTEXT": 5, "SASL": 20},
                failed={"PLAINTEXT": 4, "SASL": 10},
                refused={HandshakeRefusal.CERTIFICATE: 14},
            ),
        ),
        "authentication": lambda: {
            "SASL": AuthenticationStatistics(
                successful=8,
                without_sessions=1,
                failed=2,
                successful_again=3,
                failed_again=4,
                expired=5,
                late=6,
                pushed_out=7,
                latency_avg_s=0.25,
                latency_max_s=0.5,
            )
        },
        "requests": lambda: RequestStatistics(
            requests={"Produce": produce.snapshot(60.0)},
            pool=HandlerPoolStatistics(workers=8, busy=0, queued=0, busy_s=0.5),
        ),
        "background": lambda: {"x": TaskStatistics(runs=1, failures=0, seconds=0.1)},
        "deadlines": lambda: DeadlinesStatistics(active=1, fired=0),
        "opening": lambda: OpeningStatistics(in_threads=9, in_processes=4, too_much=2, waiting=1),
        "quotas": limited_quotas(),
        "access": lambda: AuthorizerStatistics(rules=8, allowed=7, denied=6),
        "loop": lambda: LoopStatistics(
            longest_turn_s=0.06, long_turns=2, long_turns_s=0.11, idle_s=30.0
        ),
        "disk": lambda: (4096, 8192),
        "recent": Recent(lambda: 1.0),
    }
    return Sources(**{**values, **changes})


def limited_quotas() -> Quotas:
    """One client that is throttled for each kind of quota, and an address that is."""
    clock = ManualClock()
    quotas = Quotas(clock)
    ann = Entity(user="ann smith", client_id=DEFAULT)
    quotas.change(ann, "producer_byte_rate", 100)
    quotas.change(ann, "consumer_byte_rate", 200)
    quotas.change(ann, "request_percentage", 50)
    quotas.change(ann, "controller_mutation_rate", 2)
    quotas.change(Entity(ip="10.0.0.1"), "connection_creation_rate", 3)
    charging, accepting = quotas.charging, quotas.accepting
    assert charging is not None
    assert accepting is not None
    now_ms = charging.now_ms()
    for quota, value in ((charging.produce, 1500), (charging.fetch, 1000), (charging.request, 5)):
        throttle_ms = quota.spend("ann smith", 'c"1', value, now_ms)
        quota.note_throttled("ann smith", 'c"1', throttle_ms, now_ms)
    charge = charging.mutation.charge("ann smith", 'c"1', strict=False)
    assert charge is not None
    charge(30)
    charging.exempt.record(20, now_ms)
    charging.produce.throttled = 4
    for _ in range(40):
        accepting.wait_ms("PLAINTEXT")
        accepting.refuse_ms("PLAINTEXT", "10.0.0.1")
    return quotas


async def group_statistics() -> Any:
    """Return statistics of some groups."""
    counters = GroupCounters()
    counters.commits, counters.completed_rebalances = 5, 1
    return GroupStatistics(
        timers=0,
        groups={"Stable": 2, "PreparingRebalance": 1},
        offsets=4,
        counters=counters,
        loading=LoadStatistics(
            partitions={},
            loads=1,
            load_time_max_ms=1.5,
            load_time_total_ms=1.5,
            loaded_records=0,
        ),
    )


def after_a_transaction() -> TransactionHarness:
    """Return a coordinator whose statistics are not empty."""
    broker = TransactionHarness()
    owner = broker.owner()
    broker.add(owner, T0)
    broker.end(owner)
    return broker


LISTENER = Listener(name="PLAINTEXT", host="h", port=9092, protocol="PLAINTEXT")


def led(
    topic: str,
    index: int,
    *,
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...],
    adding: int = 0,
) -> Any:
    """Return a stub of a led partition for its families. `adding`: how many of its replicas."""
    return Stub(
        topic_partition=TopicPartition(topic, index),
        unavailable=ErrorCode.NONE,
        broker_id=1,
        replicas=replicas,
        isr=isr,
        replication_factor=len(replicas) - adding,
        effective_min_isr=len(replicas),
        log=Stub(high_watermark=10, last_stable_offset=8, log_start_offset=2),
    )


def committed(*offsets: int) -> dict[int, CommittedOffset]:
    """Return committed offsets by partition."""
    return {
        index: CommittedOffset(offset=offset, commit_timestamp_ms=0)
        for index, offset in enumerate(offsets)
    }


async def gathered(statistics: Callable[..., Any], **fields: Any) -> Any:
    """Gather statistics."""
    return statistics(**fields)


def cluster_controller_statistics() -> ClusterControllerStatistics:
    events = EventQueue(ManualClock()).statistics()
    channel = ChannelStatistics(3, Distribution().snapshot(0.0))
    return ClusterControllerStatistics(
        gauges=ControllerStatistics(),
        replicas_to_delete_count=1,
        active_broker_count=2,
        events=events,
        channels={4: channel},
    )


async def controller_statistics() -> ControllerStatistics:
    return ControllerStatistics(
        active_controller_count=1,
        global_topic_count=1,
        global_partition_count=1,
        offline_partitions_count=0,
        preferred_replica_imbalance_count=2,
        elections=ElectionStatistics(isr_shrinks=3, isr_expands=4, unclean=5),
        topics_to_delete_count=0,
    )
