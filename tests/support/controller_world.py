"""A cluster for the controller's tests: a shared tree, controllers, and brokers that obey them.

The brokers answer as Kafka's do: they refuse an older controller's epoch and the epoch of another
life, keep what the controller sends, and have nothing else. Nothing here has a thread, a socket or
a clock of its own (`tests.support.scheduler`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from broker.cluster.image import BrokerImage
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import Create, TreeOperation
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import (
    broker_path,
    decode_leader_and_isr,
    decode_topic,
    encode_assignment,
    encode_broker,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.cluster.tree_values import encode_config as encode_topic_config
from broker.controller.cluster_controller import ClusterController
from broker.controller.settings import ControllerSettings
from broker.deadlines import Deadlines
from broker.peers.peer import Peer, PeerError
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
)
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from protocol.schema import Message
from protocol.types import TopicPartition
from storage.waits import PAUSE, Signal, Work
from tests.support.scheduler import Scheduler
from tests.support.shared_tree import SharedTree, TreeSession
from tests.support.stores import new_uuid

T = TypeVar("T")
LISTENER = "PLAINTEXT"
DELETED = -2


def endpoint(broker_id: int) -> Listener:
    """A broker's address."""
    return Listener(name=LISTENER, host=f"b{broker_id}", port=9092, protocol="PLAINTEXT")


@dataclass
class FakeBroker:
    """A broker that obeys the controller."""

    broker_id: int
    epoch: int = -1
    alive: bool = False
    silent: bool = False
    """Whether it does not answer, though it lives: its connections fail."""
    controller_epoch: int = 0
    replicas: dict[TopicPartition, LeaderAndIsrPartitionState] = field(default_factory=dict)
    """The partitions that it leads and follows."""
    stopped: dict[TopicPartition, bool] = field(default_factory=dict)
    """Stopped partitions, and whether they were deleted."""
    metadata: dict[TopicPartition, UpdateMetadataPartitionState] = field(default_factory=dict)
    brokers: tuple[int, ...] = ()
    failed_dirs: set[TopicPartition] = field(default_factory=set)
    undeletable: set[TopicPartition] = field(default_factory=set)
    received: list[Message] = field(default_factory=list)

    def isr_request(
        self, topic_id: bytes, partition: int, wanted: LeaderAndIsr
    ) -> AlterPartitionRequest:
        """Return its request to the controller for a partition that it leads."""
        altered = AlteredPartition(
            partition_index=partition,
            leader_epoch=wanted.leader_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=one) for one in wanted.isr],
            partition_epoch=wanted.partition_epoch,
        )
        return AlterPartitionRequest(
            broker_id=self.broker_id,
            broker_epoch=self.epoch,
            topics=[AlteredTopic(topic_id=topic_id, partitions=[altered])],
        )

    def answer(self, request: Message) -> Message:
        """The response of this broker."""
        self.received.append(request)
        assert isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest)
        code = ErrorCode.NONE
        if request.controller_epoch < self.controller_epoch:
            code = ErrorCode.STALE_CONTROLLER_EPOCH
        elif request.broker_epoch != self.epoch:
            code = ErrorCode.STALE_BROKER_EPOCH
        else:
            self.controller_epoch = request.controller_epoch
        if isinstance(request, LeaderAndIsrRequest):
            return self._lead(request, code)
        if isinstance(request, UpdateMetadataRequest):
            if code == ErrorCode.NONE:
                self._note(request)
            return UpdateMetadataResponse(error_code=code)
        return self._stop(request, code)

    def _lead(self, request: LeaderAndIsrRequest, code: ErrorCode) -> LeaderAndIsrResponse:
        if code != ErrorCode.NONE:
            return LeaderAndIsrResponse(error_code=code)
        topics = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                assert self.broker_id in state.replicas, (tp, state)
                known = self.replicas.get(tp)
                error = ErrorCode.NONE
                if tp in self.failed_dirs:
                    error = ErrorCode.KAFKA_STORAGE_ERROR
                elif known is not None and known.leader_epoch > state.leader_epoch:
                    error = ErrorCode.STALE_CONTROLLER_EPOCH
                else:
                    self.replicas[tp] = state
                    self.stopped.pop(tp, None)
                errors.append(
                    LeaderAndIsrPartitionError(
                        partition_index=state.partition_index, error_code=error
                    )
                )
            topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(topics=topics)

    def _note(self, request: UpdateMetadataRequest) -> None:
        self.brokers = tuple(broker.id for broker in request.live_brokers)
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == DELETED:
                    self.metadata.pop(tp, None)
                else:
                    self.metadata[tp] = state

    def _stop(self, request: StopReplicaRequest, code: ErrorCode) -> StopReplicaResponse:
        errors = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                error = code
                if error == ErrorCode.NONE and tp in self.undeletable and state.delete_partition:
                    error = ErrorCode.KAFKA_STORAGE_ERROR
                if error == ErrorCode.NONE:
                    self.replicas.pop(tp, None)
                    self.stopped[tp] = state.delete_partition
                errors.append(
                    StopReplicaPartitionError(
                        topic_name=tp.topic, partition_index=tp.partition, error_code=error
                    )
                )
        return StopReplicaResponse(error_code=code, partition_errors=errors)


class FakePeer:
    """A connection to a fake broker, with the bytes of every request and answer."""

    def __init__(self, broker: FakeBroker) -> None:
        self._broker = broker
        self._closed: Signal[None] = Signal()

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Message:
        """Send, and answer."""
        assert version is not None
        codec = type(request).codec(version)
        data = codec.build(request)
        await PAUSE
        if self._closed.fired or not self._broker.alive or self._broker.silent:
            raise PeerError(f"broker {self._broker.broker_id} does not answer")
        answer = self._broker.answer(codec.parse(data))
        answering = type(answer).codec(version)
        answer = answering.parse(answering.build(answer))
        await PAUSE
        if self._closed.fired:
            raise PeerError("closed")
        return answer

    async def ready(self, *, timeout_s: float) -> None:
        """Nothing to do."""

    def version_of(self, key: ApiKey) -> int | None:
        """Not asked for."""
        return None

    def close(self) -> None:
        """End it."""
        self._closed.fire()


class ControllerWorld:
    """The tree, its clients, and the brokers."""

    def __init__(
        self,
        seed: int | None = None,
        *,
        scheduler: Scheduler | None = None,
        tree: SharedTree | None = None,
        peer: Callable[[FakeBroker], Peer] = FakePeer,
    ) -> None:
        self.scheduler = scheduler or Scheduler(seed)
        self.tree = tree or SharedTree()
        self._peer = peer
        self.admin = self.tree.session()
        """The session of the test."""
        self.brokers: dict[int, FakeBroker] = {}
        self.registrations: dict[int, TreeSession] = {}
        self.controllers: dict[int, ClusterController] = {}
        self.sessions: dict[int, TreeSession] = {}
        """Those of the controllers."""
        self.deadlines = Deadlines(self.scheduler)  # type: ignore[arg-type] # only reads the time
        self.scheduler.begin(self.deadlines.run)

    # ------------------------------------------------------------------ brokers

    def start_broker(self, *ids: int) -> None:
        """Register brokers; each in a new life."""
        for broker_id in ids:
            broker = self.brokers.setdefault(broker_id, FakeBroker(broker_id))
            session = self.registrations[broker_id] = self.tree.session()
            image = BrokerImage(broker_id=broker_id, endpoints=(endpoint(broker_id),))
            path = broker_path(broker_id)
            self.tree.apply([Create(path, encode_broker(image, (), 1), ephemeral=True)], session)
            broker.epoch = self.tree.nodes[path].created
            broker.alive = True
            broker.replicas.clear()
            broker.metadata.clear()
            broker.controller_epoch = 0

    def kill_broker(self, *ids: int) -> None:
        """End brokers and their registrations."""
        for broker_id in ids:
            self.brokers[broker_id].alive = False
            self.tree.end(self.registrations[broker_id])

    def bounce_broker(self, broker_id: int) -> None:
        """End a broker and start it again before anybody looks."""
        self.kill_broker(broker_id)
        self.start_broker(broker_id)

    # ------------------------------------------------------------------ controllers

    def start_controller(
        self, broker_id: int, settings: ControllerSettings | None = None
    ) -> ClusterController:
        """Have a broker take part in elections."""
        session = self.sessions[broker_id] = self.tree.session()
        controller = self.controllers[broker_id] = ClusterController(
            store=session,
            settings=settings or controller_settings(broker_id),
            connect=lambda other, _: self._peer(self.brokers[other]),
            begin=self.scheduler.begin,
            clock=self.scheduler,
            deadlines=self.deadlines,
            new_uuid=new_uuid,
        )
        self.scheduler.begin(controller.run)
        return controller

    def expire(self, broker_id: int) -> None:
        """End the session of a controller, and tell it."""
        self.sessions[broker_id].expire()
        self.controllers[broker_id].session_ended()

    # ------------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> bytes:
        """Write a topic to the tree as its creator does; return its id."""
        topic_id = new_uuid()
        assignments = {index: ReplicaAssignment(tuple(some)) for index, some in enumerate(replicas)}
        self.tree.apply(
            [
                Create(topic_config_path(name), encode_topic_config(config or {})),
                Create(topic_path(name), encode_assignment(topic_id, assignments)),
            ],
            None,
        )
        return topic_id

    def stored(self, topic: str, partition: int = 0) -> LeaderAndIsr:
        """A partition's state in the tree."""
        path = partition_state_path(topic, partition)
        node = self.tree.nodes[path]
        return decode_leader_and_isr(path, node.value, node.version)

    def assignment(self, topic: str, partition: int = 0) -> ReplicaAssignment:
        """A partition's replicas in the tree."""
        value = self.tree.value(topic_path(topic))
        assert value is not None
        return decode_topic(topic, value).of(partition)

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        self.scheduler.settle()

    # ------------------------------------------------------------------ promises

    def check(self, controllers: Iterable[ClusterController] | None = None) -> None:
        """At rest: one controller; its memory is the tree; every living broker sees its state."""
        active = [one for one in controllers or self.controllers.values() if one.is_active]
        assert len(active) == 1, active
        term = active[0]._term
        assert term is not None
        state = term.state
        state._check()
        for topic in state.topics.values():
            if topic.name in state.to_delete:
                continue
            for index, assignment in topic.assignments.items():
                tp = TopicPartition(topic.name, index)
                leadership = topic.leaderships.get(index)
                assert self.assignment(topic.name, index) == assignment
                if leadership is None:
                    assert partition_state_path(topic.name, index) not in self.tree.nodes
                    continue
                stored = self.stored(topic.name, index)
                assert stored._replace(controller_epoch=0) == leadership._replace(
                    controller_epoch=0
                )
                assert leadership.leader == -1 or leadership.leader in leadership.isr
                self._check_views(tp, leadership, assignment)

    def _check_views(
        self, tp: TopicPartition, leadership: LeaderAndIsr, assignment: ReplicaAssignment
    ) -> None:
        live = tuple(sorted(one.broker_id for one in self.brokers.values() if one.alive))
        for broker in self.brokers.values():
            if not broker.alive or broker.silent:
                continue
            assert broker.brokers == live, (broker.broker_id, broker.brokers, live)
            seen = broker.metadata[tp]
            assert (seen.leader, seen.leader_epoch, tuple(seen.isr), tuple(seen.replicas)) == (
                leadership.leader,
                leadership.leader_epoch,
                leadership.isr,
                assignment.replicas,
            ), (broker.broker_id, tp)
            replica = broker.replicas.get(tp)
            if broker.broker_id in assignment.replicas:
                if replica is not None:
                    assert replica.leader_epoch <= leadership.leader_epoch
                    assert tuple(replica.replicas) == assignment.replicas
                if leadership.leader == broker.broker_id:
                    assert replica is not None
                    assert replica.leader_epoch == leadership.leader_epoch
            else:
                assert replica is None, (broker.broker_id, tp)


class RestingWorld(ControllerWorld):
    """A world that comes to rest after each thing that happens to it."""

    def start_broker(self, *ids: int) -> None:
        super().start_broker(*ids)
        self.settle()

    def kill_broker(self, *ids: int) -> None:
        super().kill_broker(*ids)
        self.settle()

    def bounce_broker(self, broker_id: int) -> None:
        super().kill_broker(broker_id)
        self.start_broker(broker_id)

    def start_controller(
        self, broker_id: int, settings: ControllerSettings | None = None
    ) -> ClusterController:
        controller = super().start_controller(broker_id, settings)
        self.settle()
        return controller

    def create_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> bytes:
        topic_id = super().create_topic(name, replicas, config)
        self.settle()
        return topic_id

    def write(self, *operations: TreeOperation) -> None:
        """Change the tree, as another of its writers."""
        self.tree.apply(operations, None)
        self.settle()

    def alter(self, tp: TopicPartition, isr: tuple[int, ...]) -> AlterPartitionResponse:
        """Have the leader of `tp` ask the active controller for another ISR."""
        stored = self.stored(*tp)
        controller = next(one for one in self.controllers.values() if one.is_active)
        assert controller._term is not None
        topic_id = controller._term.state.topics[tp.topic].topic_id
        wish = stored._replace(isr=isr)
        request = self.brokers[stored.leader].isr_request(topic_id, tp.partition, wish)
        return self.ask(controller.requests.alter_partition(request))

    def ask(self, work: Work[T]) -> T:
        """Have a controller answer; return its answer or raise its error."""
        answer = self.scheduler.run(work)
        self.settle()
        return answer


def controller_settings(broker_id: int, **more: object) -> ControllerSettings:
    """Settings for tests."""
    values: dict[str, object] = {
        "broker_id": broker_id,
        "inter_broker_listener": LISTENER,
        "auto_leader_rebalance_enable": False,
    }
    return ControllerSettings(**values | more)  # type: ignore[arg-type]


def code_of(error: KafkaError | None) -> ErrorCode | None:
    """The code of an outcome; None if it is no error."""
    return None if error is None else error.code
