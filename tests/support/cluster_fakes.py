"""Fakes of the parts that the controller commands, and a controller ready to use."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker.cluster.controller import Controller
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.image import MetadataImage, PartitionImage, TopicImage
from broker.cluster.image_applier import ImageApplier
from broker.cluster.topic_log_configs import TopicLogConfigs, topic_defaults
from broker.replication.delta_application import apply_delta
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from tests.support.manual_clock import ManualClock
from tests.support.stores import new_uuid, open_store, value_of


@dataclass
class FakeReplicas:
    """Records the controller's calls; `fail` names partitions whose log cannot be made."""

    broker_id: int = 0
    leading: dict[TopicPartition, tuple[bytes, int, TopicConfig, bool]] = field(
        default_factory=dict
    )
    deleted: list[TopicPartition] = field(default_factory=list)
    fail: dict[TopicPartition, Exception] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    resigned: list[TopicPartition] = field(default_factory=list)
    is_clustered: bool = False

    def find(self, key: tuple[str, int]) -> None:
        return None

    def make_leader(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        image: PartitionImage,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Any:
        if tp in self.fail:
            raise self.fail[tp]
        self.leading[tp] = (topic_id, image.leader_epoch, config, is_new)

    def make_follower(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        image: PartitionImage,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Any:
        raise AssertionError("nobody follows in these tests")

    def resign(self, tp: TopicPartition, image: PartitionImage) -> None:
        if self.leading.pop(tp, None) is not None:
            self.resigned.append(tp)

    def delete_partition(self, tp: TopicPartition) -> None:
        self.leading.pop(tp, None)
        self.deleted.append(tp)

    def forget_topic(self, topic: str) -> None:
        self.forgotten.append(topic)


@dataclass
class FakeCoordinator:
    """Remembers the calls."""

    elected: list[tuple[int, int]] = field(default_factory=list)
    resigned: list[int] = field(default_factory=list)
    deleted: list[tuple[str, ...]] = field(default_factory=list)

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        self.elected.append((partition, leader_epoch))

    def on_resigned(self, partition: int) -> None:
        self.resigned.append(partition)

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        self.deleted.append(tuple(topics))


@dataclass
class FakeLogConfigs:
    updates: list[tuple[str, TopicConfig]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    """Topics that have logs."""
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    takes_new_logs: bool = True
    prepared: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    """Partitions whose files were made since the last were discarded."""

    async def prepare(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None:
        self.prepared.extend(wanted)

    async def discard_prepared(self) -> None:
        self.prepared.clear()

    def update_topic_config(self, topic: str, config: TopicConfig) -> None:
        self.updates.append((topic, config))

    async def update_all_configs(self, config_of: Callable[[str], TopicConfig]) -> None:
        for topic in self.topics:
            self.updates.append((topic, config_of(topic)))

    def latest_epoch(self, tp: TopicPartition) -> int | None:
        return self.epochs.get(tp)

    def dir_of(self, tp: TopicPartition) -> str | None:
        return None


@dataclass
class Cluster:
    """A stand-alone controller over an embedded store."""

    store: EmbeddedStore
    image: MetadataImage
    config: BrokerConfig
    configs: DynamicBrokerConfig
    applier: ImageApplier
    controller: Controller
    replicas: FakeReplicas
    log_configs: FakeLogConfigs
    clock: ManualClock

    def topic(self, name: str) -> TopicImage:
        """A topic that the image has."""
        found = self.image.topic(name)
        assert found is not None
        return found

    async def node(self, path: str) -> dict[str, Any]:
        """The JSON value of a node that the tree has."""
        value: dict[str, Any] = json.loads(await value_of(self.store, path))
        return value


async def start_cluster(
    path: str = ":memory:", *, broker_id: int = 0, lead: bool = True, **props: str
) -> Cluster:
    """Open the store at `path` and start a controller on it."""
    settings = {"broker.id": str(broker_id), **{k.replace("_", "."): v for k, v in props.items()}}
    config = BrokerConfig.parse(settings)
    store = await open_store(path)
    configs = await DynamicBrokerConfig.load(config, store)
    image = MetadataImage(cluster_id="c" * 22)
    replicas, log_configs, clock = FakeReplicas(broker_id), FakeLogConfigs(), ManualClock()
    topic_configs = TopicLogConfigs(image, configs, log_configs)
    applier = ImageApplier(
        store=store,
        image=image,
        carry_out=partial(apply_delta, replicas),
        logs=log_configs,
        configs=topic_configs,
        broker_id=broker_id,
    )
    controller = Controller(
        store=store,
        image=image,
        applier=applier,
        configs=topic_configs,
        logs=log_configs,
        broker_id=broker_id,
        clock=clock,
        new_uuid=new_uuid,
    )
    configs.follow(topic_defaults, lambda _: controller.topic_defaults_changed())
    await controller.load()
    if lead:
        await controller.lead()
    return Cluster(store, image, config, configs, applier, controller, replicas, log_configs, clock)
