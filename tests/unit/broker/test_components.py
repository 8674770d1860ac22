"""Parts of a running broker follow its configuration: pools, limits, logs."""

from random import Random

from broker.components import Components
from broker.deadlines import Deadlines
from broker.network.connection_limits import ConnectionRefusal
from broker.world.driver import Driver
from broker.world.journal_medium import JournalMedia
from broker.world.workers import InlineWorkers
from broker.world.world import World
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from tests.support.begun import begin
from tests.support.cluster_fakes import start_cluster
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock
from tests.support.memory_transport import MemoryTransport
from tests.support.virtual_time import Timeline, VirtualClock


def test_all_logs_take_the_new_configs_of_their_topics() -> None:
    manager = log_manager(
        BrokerConfig.parse({"log.dirs": "/a"}),
        ManualClock(),
        FaultyFileSystem(),
    )
    manager.startup(lambda topic: TopicConfig())
    logs = [
        manager.get_or_create_log(TopicPartition(topic, 0), bytes(16), TopicConfig(), is_new=True)
        for topic in ("t", "u")
    ]
    sizes = {"t": 1000, "u": 2000}
    work = begin(manager.update_all_configs(lambda topic: TopicConfig(segment_bytes=sizes[topic])))
    assert work.done
    assert work.pauses == 2
    assert [log.config.segment_bytes for log in logs] == [1000, 2000]
    manager.reconfigure(BrokerConfig.parse({"log.dirs": "/a", "producer.id.expiration.ms": "7"}))
    assert [log.producers.expiration_ms for log in logs] == [7, 7]


async def test_a_change_reaches_every_part() -> None:
    cluster = await start_cluster(log_dirs="/a")
    fs, clock = FaultyFileSystem(), VirtualClock(Timeline())
    manager = log_manager(cluster.config, clock, fs)
    manager.startup(lambda topic: TopicConfig())
    parts = Components(
        cluster.configs,
        cluster_id="c" * 22,
        store=cluster.store,
        log_manager=manager,
        deadlines=Deadlines(clock),
        world=World(
            clock=clock,
            fs=fs,
            random=Random(1),
            transport=MemoryTransport(),
            media=JournalMedia(fs),
            workers=InlineWorkers(),
        ),
        driver=Driver(InlineWorkers(), clock),
        check_buffers=False,
    )
    await parts.configs.alter(
        lambda old: {
            "num.io.threads": "16",
            "background.threads": "20",
            "max.connections": "0",
            "log.retention.ms": "77",
            "log.cleaner.backoff.ms": "78",
            "cordoned.log.dirs": "/a",
            "transaction.partition.verification.enable": "false",
        },
        for_cluster=False,
    )
    assert parts.requests.pool.statistics().workers == 16
    assert parts.socket_server.limits.admit("h") is ConnectionRefusal.BROKER_LIMIT
    assert parts.background._limiter.total_tokens == 20
    assert parts.controller.topic_config("t").retention_ms == 77
    assert parts.log_cleaner.backoff_ms == 78
    assert not manager.takes_new_logs
    assert not parts.transaction_coordinator.settings.verify_partitions
