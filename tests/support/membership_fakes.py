"""Fakes around the parts that obey a controller."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from broker.cluster.image import PartitionImage
from broker.cluster.image_delta import DeltaOutcome, TopicDelta
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import PAUSE

ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))


def partition(
    leader: int, epoch: int, replicas: tuple[int, ...] = (1, 2, 3), *, partition_epoch: int = 0
) -> PartitionImage:
    """A partition whose replicas are all in sync."""
    return PartitionImage(
        leader=leader,
        leader_epoch=epoch,
        replicas=replicas,
        isr=replicas,
        partition_epoch=partition_epoch,
    )


@dataclass
class Hosted:
    """A partition that is here."""

    leader_epoch: int = 0
    topic_id: bytes = ID
    unavailable: ErrorCode = ErrorCode.NONE
    appending: int = 0


@dataclass
class ObeyingReplicas:
    """The table of partitions; remembers the calls."""

    hosted: dict[tuple[str, int], Hosted] = field(default_factory=dict)
    fail: dict[tuple[str, int], Exception] = field(default_factory=dict)
    applied: list[tuple[str, int, bool, int]] = field(default_factory=list)
    """Topic, partition, whether it is new, leader."""
    configs: list[TopicConfig | None] = field(default_factory=list)
    stopped: list[tuple[TopicPartition, bool]] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    """Called while a delta is applied."""

    @property
    def find(self) -> Callable[[tuple[str, int]], Hosted | None]:
        return self.hosted.get

    async def apply(self, delta: TopicDelta, config: TopicConfig | None) -> DeltaOutcome:
        assert delta.topic is not None
        failed = {}
        self.configs.append(config)
        for index in (*delta.new, *delta.changed):
            await PAUSE
            self.during()
            error = self.fail.get((delta.name, index))
            if error is not None:
                failed[index] = error
                continue
            image = delta.topic.partitions[index]
            self.applied.append((delta.name, index, index in delta.new, image.leader))
            self.hosted[delta.name, index] = Hosted(image.leader_epoch, delta.topic.topic_id)
        return DeltaOutcome(failed=failed)

    def stop_replica(self, tp: TopicPartition, *, delete: bool) -> None:
        if tp in self.fail:
            raise self.fail[tp]
        self.stopped.append((tp, delete))
        self.hosted.pop(tp, None)


@dataclass
class PreparedLogs:
    """Remembers the prepared logs."""

    offline_dirs: tuple[str, ...] = ()
    prepared: list[TopicPartition] = field(default_factory=list)
    discarded: int = 0

    async def prepare(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None:
        self.prepared += [tp for tp, _ in wanted]

    async def discard_prepared(self) -> None:
        self.discarded += 1


class FakeTopicConfigs:
    """The configs that topics set themselves: topic t has one as soon as it is learned."""

    def __init__(self) -> None:
        self.learned: list[list[str]] = []
        self.forgotten: list[str] = []
        self.are_any = True

    async def learn(self, names: list[str]) -> None:
        self.learned.append(names)

    def own(self, name: str) -> dict[str, str]:
        return {"retention.ms": "7"} if self.learned and name == "t" else {}

    def forget(self, name: str) -> None:
        self.forgotten.append(name)


@dataclass
class FakeController:
    """A controller that is active, or not."""

    is_active: bool = True
    epoch_version: int = 0


async def code_of(work: object) -> ErrorCode:
    """The code with which `work` is refused."""
    try:
        await work  # type: ignore[misc]
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
