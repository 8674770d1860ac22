"""Whole brokers in one cluster, within a test: no process, thread, socket, disk or waiting.

    @whole_cluster(3, min__insync__replicas="2")
    async def test_another_leads(cluster: WholeCluster) -> None:
        await cluster.create_topic("t", [[1, 2, 3]])
        await cluster.kill(1)
        await cluster.until(lambda image: image.topic("t").partitions[0].leader == 2)

As `tests.support.whole_broker`, whose brokers these are: brokers 1, 2, … on hosts b1, b2, …, and
one ZooKeeper in memory. HOST in `listeners` stands for the broker's own.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from broker.cluster.image import MetadataImage
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from protocol.records.builder import build_batch
from tests.support.memory_transport import MemoryNetwork
from tests.support.memory_zookeeper import MemoryTree, MemoryZooKeeper
from tests.support.produce_requests import one_batch
from tests.support.virtual_time import Timeline
from tests.support.whole_broker import WholeBroker, dotted, run_in_nursery

SESSION_S: Final = 6
PATIENCE_S: Final = 120.0
SETTINGS: Final = {
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": str(SESSION_S * 1000),
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}


class WholeCluster:
    """Brokers by their ids."""

    def __init__(
        self, timeline: Timeline, nursery: trio.Nursery, count: int, settings: dict[str, str]
    ) -> None:
        self.zookeeper = MemoryZooKeeper()
        network = MemoryNetwork()
        self._nursery = nursery
        self.brokers: dict[int, WholeBroker] = {}
        self.dead: set[int] = set()
        for broker_id in range(1, count + 1):
            host = f"b{broker_id}"
            listeners = settings.get("listeners", "PLAINTEXT://HOST:9092")
            own = {"broker.id": str(broker_id), "listeners": listeners.replace("HOST", host)}
            broker = WholeBroker(timeline, nursery, {**SETTINGS, **settings, **own})
            broker.network, broker.host = network, host
            broker.open_tree = self.zookeeper.open
            self.brokers[broker_id] = broker
        self.clock = self.brokers[1].clock

    def __getitem__(self, broker_id: int) -> WholeBroker:
        return self.brokers[broker_id]

    # ---- life and death

    async def start(self) -> None:
        """Start all; wait until each knows all."""
        for broker in self.brokers.values():
            await broker.start()
        await self.until_whole()

    def tree_of(self, broker_id: int) -> MemoryTree:
        """The store of a broker that lives."""
        store = self[broker_id].server.store
        assert isinstance(store, MemoryTree)
        return store

    async def kill(self, broker_id: int) -> None:
        """Kill it; ZooKeeper notices after the session timeout."""
        tree = self.tree_of(broker_id)
        self.dead.add(broker_id)
        self[broker_id].kill()

        async def notice() -> None:
            await self.clock.sleep(SESSION_S)
            tree.lose()

        self._nursery.start_soon(notice)

    async def stop(self, broker_id: int) -> None:
        """Stop it in order."""
        assert await self[broker_id].stop()
        self.dead.add(broker_id)

    async def restart(self, broker_id: int) -> None:
        """Start it again."""
        await self[broker_id].start()
        self.dead.discard(broker_id)

    # ---- its state

    def images(self) -> dict[int, MetadataImage]:
        """Return the image of each broker that lives."""
        return {
            broker_id: broker.server.components.image
            for broker_id, broker in self.brokers.items()
            if broker_id not in self.dead
        }

    async def until(self, holds: Callable[[MetadataImage], bool]) -> None:
        """Wait until it holds for every broker that lives. Raises AssertionError."""
        with self.clock.timeout(PATIENCE_S):
            while not all(map(holds, self.images().values())):
                await self.clock.sleep(0.05)
            return
        raise AssertionError(f"not after {PATIENCE_S} s")

    async def until_whole(self) -> None:
        """Wait until all that live know each other, and every live replica is in sync."""
        live = set(self.images())

        def is_whole(image: MetadataImage) -> bool:
            return {broker.broker_id for broker in image.brokers()} == live and all(
                set(partition.isr) == set(partition.replicas) & live
                for topic in image.topics()
                for partition in topic.partitions.values()
            )

        await self.until(is_whole)

    def controller(self) -> int:
        """Return the controller, which all live brokers must name."""
        [found] = {image.controller_id for image in self.images().values()}
        return found

    # ---- requests

    async def create_topic(self, name: str, assignment: list[list[int]]) -> ErrorCode:
        """Have the controller make a topic with these replicas; return its answer."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                        for index, replicas in enumerate(assignment)
                    ],
                    configs=[],
                )
            ],
            timeout_ms=30_000,
        )
        client = self[self.controller()].client("admin")
        answer = await client.call(ApiKey.CREATE_TOPICS, 5, request)
        client.close()
        return ErrorCode(answer.topics[0].error_code)

    async def produce(self, broker_id: int, topic: str, index: int, *values: str) -> ErrorCode:
        """Write one batch with acks=all through a broker; return the code of the answer."""
        now_ms = self.clock.wall_ms()
        records = build_batch([(now_ms, None, value.encode(), ()) for value in values])
        request = one_batch(topic, records, partition=index, timeout_ms=10_000)
        client = self[broker_id].client("producer")
        answer = await client.call(ApiKey.PRODUCE, 8, request)
        client.close()
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def log_end(self, broker_id: int, topic: str, index: int) -> int:
        """Return the end offset of a replica's log."""
        partition = self[broker_id].server.components.replica_manager.find((topic, index))
        assert partition is not None
        return partition.log.log_end_offset


def whole_cluster(
    count: int, **settings: str
) -> Callable[[Callable[[WholeCluster], Awaitable[None]]], Callable[[], None]]:
    """Make a test of a coroutine that gets a cluster of so many brokers."""

    def decorate(test: Callable[[WholeCluster], Awaitable[None]]) -> Callable[[], None]:
        @functools.wraps(test)
        def run() -> None:
            async def main(timeline: Timeline, nursery: trio.Nursery) -> None:
                cluster = WholeCluster(timeline, nursery, count, dotted(settings))
                await cluster.start()
                await test(cluster)

            run_in_nursery(main)

        del run.__wrapped__  # type: ignore[attr-defined] # pytest takes its parameter for a fixture
        return run

    return decorate
