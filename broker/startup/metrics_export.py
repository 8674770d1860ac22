"""Opens the metrics listener over the components of a running broker, if one is configured.

A module of its own because `broker.server` knows no metric and `broker.metrics` knows only what the
parts' statistics are: that room is handed functions.
"""

import logging
from collections.abc import Callable

import trio

from broker.broker_state import BrokerState
from broker.components import Components
from broker.world.clock import TaskClock
from broker.world.descriptors import DescriptorBudget
from broker.world.process_limits import disk_bytes
from broker.world.transport import BindError, Transport

logger = logging.getLogger(__name__)


async def start_metrics(
    services: trio.Nursery,
    components: Components,
    transport: Transport,
    clock: TaskClock,
    broker_state: Callable[[], BrokerState],
    descriptors: DescriptorBudget,
) -> None:
    """Start the listener as a task of `services`, if one is configured. Raises BindError."""
    config = components.configs.current
    if not config.metrics_http_listener:
        return
    # These modules import prometheus_client, which a broker without metrics need not.
    from broker.metrics.exposition import ProcessFamilies, render
    from broker.metrics.families import Sources, all_families
    from broker.metrics.http_listener import CONNECTIONS, MetricsListener, parse_address
    from broker.metrics.recent import Recent

    authorizer, cluster = components.authorizer, components.cluster
    sources = Sources(
        broker_state=broker_state,
        cluster_id=components.image.cluster_id,
        broker_id=config.broker_id,
        replicas=components.replica_manager.statistics,
        logs=components.log_manager.all_logs,
        log_manager=components.log_manager.statistics,
        cleaner=components.log_cleaner.statistics
        if components.log_cleaner.is_enabled
        else lambda: None,
        partitions=components.replica_manager.partitions,
        topics=components.image.topics,
        brokers=components.image.brokers,
        controller=components.controller.statistics,
        groups=components.group_coordinator.statistics,
        group_offsets=components.group_coordinator.groups_at_a_time,
        high_watermark=components.replica_manager.high_watermark_of,
        transactions=components.transaction_coordinator.statistics,
        fetch_sessions=components.fetch_sessions.statistics,
        sockets=components.socket_server.statistics,
        authentication=components.authentication_statistics,
        requests=components.requests.statistics,
        background=components.background.statistics,
        deadlines=components.deadlines.statistics,
        opening=components.replica_manager.opener.statistics,
        quotas=components.quotas,
        access=lambda: None if authorizer is None else authorizer.statistics(),
        loop=components.watch.statistics,
        disk=disk_bytes,
        recent=Recent(clock.monotonic),
        cluster_controller=None if cluster is None else cluster.controller.statistics,
        zookeeper=None if cluster is None else cluster.store.statistics,
        peers={} if cluster is None else cluster.peers.traffic,
    )
    process = ProcessFamilies()

    async def scrape() -> list[bytes]:
        return await render([*await all_families(sources), *process.collect()])

    async def text() -> list[bytes]:
        return await components.requests.driver.run(scrape(), lambda: "a scrape of the metrics")

    address = parse_address(config.metrics_http_listener)
    listener = MetricsListener(
        address, text, transport, clock, most=min(CONNECTIONS, descriptors.connections // 8)
    )
    try:
        await services.start(listener.serve)
    except BindError as error:
        raise BindError(
            f"Cannot listen on {config.metrics_http_listener} for metrics: {error}.",
            errno=error.errno,
            for_metrics=True,
        ) from error
    logger.info("Metrics on %s, port %d", listener.host, listener.port)
