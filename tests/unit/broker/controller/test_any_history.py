"""Whatever happens, in whatever order: Hypothesis plays a cluster, and the rules hold.

* No two leaders of one epoch; leader epochs only grow; a clean leader was in sync before.
* At rest one broker is the controller, its memory is the tree, and every living broker has the
  state that the tree has.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from broker.cluster.image import NO_LEADER
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import Create, NodeExistsError
from broker.cluster.tree_values import decode_leader_and_isr, deletion_path
from protocol.errors import KafkaError
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.types import TopicPartition
from tests.support.controller_world import ControllerWorld

BROKERS = (1, 2, 3, 4)
CONTROLLERS = (1, 2)
REPLICAS = st.permutations(BROKERS).flatmap(
    lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count]))
)


class Play:
    """A cluster, and what may happen to it."""

    def __init__(self, seed: int) -> None:
        self.world = ControllerWorld(seed)
        self.world.start_broker(*BROKERS)
        for broker_id in CONTROLLERS:
            self.world.start_controller(broker_id)
        self.made = 0
        self.asked: list[Any] = []

    # ---- events

    def make_topic(self, replicas: tuple[int, ...], unclean: bool) -> None:
        self.made += 1
        name = f"t{self.made}"
        config = {"unclean.leader.election.enable": "true"} if unclean else {}
        self.world.create_topic(name, [replicas, replicas[::-1]], config)

    def kill(self, broker_id: int) -> None:
        if self.world.brokers[broker_id].alive and self._alive() > 1:
            self.world.kill_broker(broker_id)

    def start(self, broker_id: int) -> None:
        if not self.world.brokers[broker_id].alive:
            self.world.start_broker(broker_id)

    def bounce(self, broker_id: int) -> None:
        if self.world.brokers[broker_id].alive:
            self.world.bounce_broker(broker_id)

    def _alive(self) -> int:
        return sum(broker.alive for broker in self.world.brokers.values())

    def silence(self, broker_id: int) -> None:
        broker = self.world.brokers[broker_id]
        broker.silent = not broker.silent

    def expire(self, broker_id: int) -> None:
        self.world.expire(broker_id)
        self.world.controllers[broker_id].session_began()

    def lose_answers(self, broker_id: int, count: int) -> None:
        self.world.sessions[broker_id].lose_answers = count

    def delete(self, number: int) -> None:
        names = self.world.tree.names("/brokers/topics")
        if names:
            with suppress(NodeExistsError):
                self.world.tree.apply([Create(deletion_path(names[number % len(names)]))], None)

    def reassign(self, number: int, target: tuple[int, ...] | None) -> None:
        tp = self._any_partition(number)
        if tp is not None:
            self._ask(lambda controller: controller.requests.alter_reassignments({tp: target}))

    def elect(self, kind: int) -> None:
        self._ask(lambda controller: controller.requests.elect_leaders(kind, None))

    def shut_down(self, broker_id: int) -> None:
        epoch = self.world.brokers[broker_id].epoch
        self._ask(lambda controller: controller.requests.controlled_shutdown(broker_id, epoch))

    def alter(self, broker_id: int, number: int, more: tuple[int, ...]) -> None:
        """A leader wants another ISR: itself and some of its replicas."""
        broker = self.world.brokers[broker_id]
        led = sorted(tp for tp, one in broker.replicas.items() if one.leader == broker_id)
        if not broker.alive or not led:
            return
        tp = led[number % len(led)]
        state = broker.replicas[tp]
        told = broker.metadata.get(tp)
        version = (
            state.partition_epoch
            if told is None
            else max(
                told.zk_version if told.leader_epoch == state.leader_epoch else 0,
                state.partition_epoch,
            )
        )
        isr = broker_id, *(one for one in more if one in state.replicas and one != broker_id)
        wanted = LeaderAndIsr(broker_id, isr, state.leader_epoch, version)

        def ask(controller: Any) -> Any:
            term = controller._term
            topic = None if term is None else term.state.topics.get(tp.topic)
            topic_id = bytes(16) if topic is None else topic.topic_id
            request = broker.isr_request(topic_id, tp.partition, wanted)
            return controller.requests.alter_partition(request)

        self._ask(ask)

    def some_steps(self, count: int) -> None:
        for _ in range(count):
            self.world.scheduler._step()

    def time_passes(self) -> None:
        self.world.scheduler.advance(1)

    def _any_partition(self, number: int) -> TopicPartition | None:
        names = self.world.tree.names("/brokers/topics")
        return TopicPartition(names[number % len(names)], number % 2) if names else None

    def _ask(self, ask: Callable[[Any], Any]) -> None:
        for controller in self.world.controllers.values():
            if controller.is_active:
                self.asked.append(self.world.scheduler.start(ask(controller)))

    # ---- the end, and what must hold

    def come_to_rest(self) -> None:
        for broker in self.world.brokers.values():
            broker.silent = False
        for session in self.world.sessions.values():
            session.lose_answers = 0
        self.world.scheduler.advance(20)
        self.world.check()
        for outcome in self.asked:
            assert len(outcome) == 1, "a request was not answered"
            assert not isinstance(outcome[0], BaseException) or isinstance(outcome[0], KafkaError)

    def check_history(self) -> None:
        last: dict[str, LeaderAndIsr] = {}
        leaders: dict[tuple[str, int], int] = {}
        for path, value in self.world.tree.history:
            if not path.endswith("/state"):
                continue
            if value is None:
                last.pop(path, None)
                for key in [key for key in leaders if key[0] == path]:
                    del leaders[key]
                continue
            state = decode_leader_and_isr(path, value, 0)
            before = last.get(path)
            assert len(set(state.isr)) == len(state.isr) > 0
            assert state.leader == NO_LEADER or state.leader in state.isr, state
            if before is not None:
                assert state.leader_epoch >= before.leader_epoch, (before, state)
                assert state.controller_epoch >= before.controller_epoch
                if state.leader_epoch > before.leader_epoch:
                    clean = state.leader in (NO_LEADER, *before.isr)
                    assert clean or (state.recovering and state.isr == (state.leader,)), (
                        before,
                        state,
                    )
                else:
                    assert state.leader == before.leader
            known = leaders.setdefault((path, state.leader_epoch), state.leader)
            assert known == state.leader, (path, state)
            last[path] = state

    def check_requests(self) -> None:
        """The requests to brokers name one leader per epoch of a partition."""
        leaders: dict[tuple[bytes, int, int], int] = {}
        for broker in self.world.brokers.values():
            for request in broker.received:
                if isinstance(request, LeaderAndIsrRequest):
                    for topic in request.topic_states:
                        for one in topic.partition_states:
                            key = (topic.topic_id, one.partition_index, one.leader_epoch)
                            assert leaders.setdefault(key, one.leader) == one.leader


BROKER = st.sampled_from(BROKERS)
CONTROLLER = st.sampled_from(CONTROLLERS)
NUMBER = st.integers(0, 5)
EVENTS = st.one_of(
    st.tuples(st.just("make_topic"), REPLICAS, st.booleans()),
    st.tuples(st.just("kill"), BROKER),
    st.tuples(st.just("start"), BROKER),
    st.tuples(st.just("bounce"), BROKER),
    st.tuples(st.just("silence"), BROKER),
    st.tuples(st.just("expire"), CONTROLLER),
    st.tuples(st.just("lose_answers"), CONTROLLER, st.integers(1, 3)),
    st.tuples(st.just("delete"), NUMBER),
    st.tuples(st.just("reassign"), NUMBER, REPLICAS | st.none()),
    st.tuples(st.just("elect"), st.integers(0, 1)),
    st.tuples(st.just("shut_down"), BROKER),
    st.tuples(st.just("alter"), BROKER, NUMBER, REPLICAS),
    st.tuples(st.just("some_steps"), st.integers(1, 200)),
    st.tuples(st.just("time_passes")),
)


@given(st.integers(0, 1 << 32), st.lists(EVENTS, max_size=25))
def test_the_rules_hold_in_any_history(seed: int, events: list[tuple[Any, ...]]) -> None:
    play = Play(seed)
    for name, *values in events:
        note(f"{name}{tuple(values)}")
        getattr(play, name)(*values)
    play.come_to_rest()
    play.check_history()
    play.check_requests()
