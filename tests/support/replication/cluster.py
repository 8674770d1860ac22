"""Three brokers that replicate partitions: real logs, partitions, fetchers and handlers.

The network (`SimPeer`: delays, links that are cut), the controller (`controller`) and the clients
are not real. A broker can be killed; its disk keeps what was written.
"""

from collections.abc import Callable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

from broker.api.list_offsets import ListOffsetsHandler
from broker.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.cluster.image_delta import first_delta, topic_delta
from broker.deadlines import Deadlines
from broker.peers.peer import PeerError
from broker.replication.delayed_produce import Awaited, DelayedProduce
from broker.replication.delta_application import apply_delta
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.fetching.replica_fetchers import ReplicaFetchers
from broker.replication.fetching.settings import FetchingSettings
from broker.replication.isr import ClusterRules
from broker.replication.isr_keeper import IsrKeeper
from broker.replication.purgatory import Purgatory
from broker.replication.replica_manager import Purgatories, ReplicaManager
from broker.world.workers import InlineWorkers
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceResponse
from protocol.messages.registry import request_codec, response_codec
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.record import iter_records
from protocol.types import TopicPartition
from storage.log.looking import look_here
from storage.log.results import FetchIsolation
from storage.waits import Signal
from tests.support.broker_bench import context, fetch_handler, with_bytes
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_managers import log_manager
from tests.support.stepping import Loop, Task

TOPIC = "t"
TOPIC_ID = b"t" * 16
VERSIONS = {ApiKey.FETCH: 17, ApiKey.LIST_OFFSETS: 9}
LAG_TIME_S = 3.0
SETTINGS = FetchingSettings(backoff_s=0.2, timeout_s=1.0, max_wait_ms=200)


class Links:
    """The links between brokers."""

    def __init__(self) -> None:
        self.cut: set[tuple[int, int]] = set()
        """(from, to): bytes that are sent that way are lost."""

    def isolate(self, broker: int, others: Iterator[int] | list[int]) -> None:
        for other in others:
            self.cut |= {(broker, other), (other, broker)}

    def heal(self) -> None:
        self.cut.clear()


class SimTasks:
    """`Tasks` on the loop of the simulation."""

    def __init__(self, broker: "SimBroker") -> None:
        self._broker = broker

    def begin(self, make: Callable[[], Any]) -> None:
        self._broker.start(make())


class SimPeer:
    """A connection from one broker to another. Every message passes its codec."""

    def __init__(self, source: "SimBroker", target: int) -> None:
        self._source = source
        self._target = target
        self._closed = False

    async def ask(
        self, key: ApiKey, request: Any, *, version: int | None = None, timeout_s: float
    ) -> Any:
        version = version or VERSIONS[key]
        cluster = self._source.cluster
        codec = request_codec(key, version)
        request = codec.parse(codec.build(request))
        replied: Signal[Any] = Signal()
        link = self._source.id, self._target
        loop = cluster.loop

        def arrive() -> None:
            target = cluster.brokers[self._target]
            if link not in cluster.links.cut and target.alive:
                target.start(target.serve(key, version, request), answer)

        def answer(response: Any) -> None:
            records = response_codec(key, version)
            built = bytearray(records.build(with_bytes(response)))
            loop.at(cluster.delay(), lambda: returned(built))

        def returned(built: bytearray) -> None:
            if (link[1], link[0]) not in cluster.links.cut:
                replied.fire(response_codec(key, version).parse(built))

        if not cluster.brokers[self._target].alive and loop.random.random() < 0.8:
            raise PeerError("refused")
        loop.at(cluster.delay(), arrive)
        if not await replied.within(timeout_s) or self._closed:
            raise PeerError("no answer")
        return replied.value

    def version_of(self, key: ApiKey) -> int | None:
        return VERSIONS.get(key)

    def close(self) -> None:
        self._closed = True


class SimBroker:
    """One broker over any number of lives."""

    def __init__(self, cluster: "Cluster", broker_id: int) -> None:
        self.cluster = cluster
        self.id = broker_id
        self.disk = FaultyFileSystem()
        self.alive = False
        self.epoch = 0
        self._tasks: list[Task] = []
        self.known: TopicImage | None = None
        """The topic as the controller told last."""

    # ------------------------------------------------------------------ life

    def begin(self) -> None:
        """Start: open the logs. The controller will name the leaders."""
        loop = self.cluster.loop
        self.alive = True
        self.epoch += 1
        self.known = None
        self.deadlines = Deadlines(loop)
        config = BrokerConfig.parse({"log.dirs": "/d", "broker.id": str(self.id)})
        self.logs = log_manager(
            config,
            loop,
            self.disk,
            on_offline=lambda path: self.replicas.directory_offline(path),
            random=Random(loop.random.random()),
        )
        self.logs.startup(lambda _: self.cluster.topic_config)
        self.image = MetadataImage()
        self.replicas = ReplicaManager(
            self.logs,
            self.image,
            loop,
            SimpleNamespace(broker_id=self.id, transaction_max_timeout_ms=900_000),
            Purgatories(Purgatory("P", self.deadlines), Purgatory("F", self.deadlines)),
            InlineWorkers(),
        )
        self.fetchers = ReplicaFetchers(
            connect=lambda leader, _: SimPeer(self, leader),
            broker_id=self.id,
            broker_epoch=lambda: self.epoch,
            settings=SETTINGS,
            table=self.replicas,
            clock=loop,
            tasks=SimTasks(self),
        )
        self.keeper = IsrKeeper(
            alter=self._alter,
            broker_id=self.id,
            broker_epoch=lambda: self.epoch,
            partitions=self.replicas.partitions,
            wake=self.replicas.wake,
            lag_time_s=LAG_TIME_S,
            clock=loop,
        )
        self.replicas.followers = self.fetchers
        self.replicas.rules = ClusterRules(
            monotonic=loop.monotonic,
            lag_time_s=LAG_TIME_S,
            may_join=lambda broker: self.image.broker(broker) is not None,
            alter_isr=self.keeper.send,
        )
        sessions = FetchSessionCache(loop, 100, random=Random(loop.random.random()))
        self._fetch = fetch_handler(self.replicas, sessions, loop)
        self._list = ListOffsetsHandler(self.replicas, look_here)
        self.start(self.deadlines.run())
        self.start(self.keeper.run())
        self.start(self._checkpoint())

    def kill(self) -> None:
        """The process ends here and now; the disk keeps what was written."""
        self.alive = False
        for task in self._tasks:
            task.kill()
        self._tasks.clear()
        self.disk = self.disk.crash(keep_unsynced=True)

    def start(self, work: Any, done: Callable[[Any], object] | None = None) -> None:
        """Begin work of this process."""
        self._tasks = [task for task in self._tasks if not task.dead]
        self._tasks.append(self.cluster.loop.start(work, done))

    async def _checkpoint(self) -> None:
        while True:
            await Signal[None]().within(1.0)
            await self.replicas.checkpoint_high_watermarks()

    # ------------------------------------------------------------------ requests

    def serve(self, key: ApiKey, version: int, request: Any) -> Any:
        handler = self._fetch if key == ApiKey.FETCH else self._list
        return handler(context(version, api_key=key), request)

    async def _alter(self, request: Any) -> Any:
        return await self.cluster.controller.alter(self, request)

    async def take(self, topic: TopicImage, live: tuple[int, ...]) -> None:
        """Obey the controller: take the topic as it is now, and the brokers that live."""
        for broker in self.cluster.brokers:
            if broker in live:
                self.image.set_broker(BrokerImage(broker_id=broker, endpoints=()))
            else:
                self.image.remove_broker(broker)
        known, self.known = self.known, topic
        delta = first_delta(topic) if known is None else topic_delta(TOPIC, known, topic)
        outcome = await apply_delta(self.replicas, delta, self.cluster.topic_config)
        assert not outcome.failed and outcome.refused is None, outcome
        self.image.set_topic(topic)

    # ------------------------------------------------------------------ clients

    async def produce(self, index: int, value: bytes) -> int | None:
        """Append with acks=all; return the offset if it was acknowledged."""
        try:
            partition = self.replicas.partition(TopicPartition(TOPIC, index))
            info = await partition.append_as_leader(
                memoryview(
                    bytearray(build_batch([(self.cluster.loop.wall_ms(), b"k", value, ())]))
                ),
                required_acks=-1,
            )
        except KafkaError:
            return None
        self.replicas.wake(partition)
        reply = PartitionProduceResponse()
        waiting = Awaited(partition, info.last_offset + 1, reply)
        parked = DelayedProduce([waiting])
        if not parked.try_complete():
            await self.replicas.purgatories.produce.wait(parked, [partition.topic_partition], 5.0)
        return info.first_offset if reply.error_code == ErrorCode.NONE else None

    def contents(self, index: int, isolation: FetchIsolation, first: int = 0) -> dict[int, bytes]:
        """Return offset -> value of the records from `first` on that `isolation` shows."""
        partition = self.replicas.find((TOPIC, index))
        if partition is None:
            return {}
        log, found = partition.log, {}
        offset, end = max(first, log.log_start_offset), log.offsets.visible_end(isolation)
        while offset < end:
            info = log.read(offset, 1 << 20, isolation, True)
            data = info.records if isinstance(info.records, bytes) else info.records.read()
            if not data:
                break
            for at, header in iter_batches(data):
                for record in iter_records(data, at):
                    if record.offset < end:
                        found[record.offset] = bytes(record.value)
                offset = header.next_offset
        return found


class Cluster:
    """The brokers, the links between them, and the controller."""

    def __init__(self, seed: int, *, brokers: int = 3, partitions: int = 2) -> None:
        from tests.support.replication.controller import SimController

        self.random = Random(seed)
        self.loop = Loop(self.random)
        self.links = Links()
        self.slow = 0.01
        """How many of the messages take up to two seconds."""
        segment = 4096 if seed % 2 else 400_000  # small segments, or large batches
        self.topic_config = TopicConfig(min_insync_replicas=2, segment_bytes=segment)
        self.brokers = {broker: SimBroker(self, broker) for broker in range(1, brokers + 1)}
        self.controller = SimController(self, partitions)

    def delay(self) -> float:
        """Return the delay of a message: mostly short, seldom long."""
        delay = 0.0005 + self.random.random() * 0.002
        if self.random.random() < self.slow:
            delay += self.random.random() * 2
        return delay

    def begin(self) -> None:
        for broker in self.brokers.values():
            broker.begin()
            self.controller.registered(broker)

    def leader_of(self, index: int) -> SimBroker | None:
        """The broker that the controller takes for the leader."""
        leader = self.controller.partitions[index].leader
        return self.brokers[leader] if leader >= 0 else None


def image_of(partitions: dict[int, PartitionImage]) -> TopicImage:
    return TopicImage(name=TOPIC, topic_id=TOPIC_ID, partitions=dict(partitions))
