"""The follower's side of a fetch session against the leader's: both always mean the same."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.replication.fetch_session import FetchSessionCache
from broker.replication.fetching.client_session import Ask, ClientSession, SessionPlan
from broker.replication.fetching.leader_endpoint import _fetch_request
from broker.replication.fetching.settings import FetchingSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchRequest
from protocol.types import TopicPartition
from tests.support.manual_clock import ManualClock

SETTINGS = FetchingSettings()
TPS = [TopicPartition(topic, index) for topic in ("a", "b") for index in range(3)]


def ask(offset: int, topic: str = "a") -> Ask:
    return Ask(topic.encode() * 16, offset, 0, 3, 2)


def named(plan: SessionPlan) -> set[TopicPartition]:
    return set(plan.asks)


def test_only_what_changed_is_named() -> None:
    session = ClientSession()
    session.want(TPS[0], ask(1))
    session.want(TPS[1], ask(1))
    first = session.plan()
    assert (first.session_id, first.session_epoch, named(first)) == (0, 0, set(TPS[:2]))
    assert session.answered(0, 77)
    session.want(TPS[1], ask(2))
    session.want(TPS[0], ask(1))
    second = session.plan()
    assert (second.session_id, second.session_epoch, named(second)) == (77, 1, {TPS[1]})
    assert session.answered(0, 77)
    session.want(TPS[0], None)
    third = session.plan()
    assert (third.session_epoch, named(third)) == (2, set())
    assert third.forgotten == {TPS[0]: b"a" * 16}


def test_a_leader_without_room_gets_everything_each_time() -> None:
    session = ClientSession()
    session.want(TPS[0], ask(1))
    for _ in range(3):
        plan = session.plan()
        assert (plan.session_id, plan.session_epoch, named(plan)) == (0, 0, {TPS[0]})
        assert session.answered(0, 0)


def test_after_a_lost_answer_everything_is_named_and_the_session_closed() -> None:
    session = ClientSession()
    session.want(TPS[0], ask(1))
    session.plan()
    session.answered(0, 77)
    session.plan()
    session.start_over()
    plan = session.plan()
    assert (plan.session_id, plan.session_epoch, named(plan)) == (77, 0, {TPS[0]})


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_s_read_11_the_leader_knows_what_the_follower_wants(data: st.DataObject) -> None:
    cache = FetchSessionCache(ManualClock(), data.draw(st.integers(0, 2)), random=Random(1))
    session = ClientSession()
    wanted: dict[TopicPartition, Ask] = {}
    for _ in range(data.draw(st.integers(1, 20))):
        for tp in data.draw(st.sets(st.sampled_from(TPS), max_size=3)):
            if tp in wanted and data.draw(st.booleans()):
                del wanted[tp]
                session.want(tp, None)
            else:
                wanted[tp] = ask(data.draw(st.integers(0, 3)), tp.topic)
                session.want(tp, wanted[tp])
        if data.draw(st.integers(0, 5)) == 0:
            session.start_over()
        if data.draw(st.integers(0, 8)) == 0:
            cache = FetchSessionCache(ManualClock(), 1, random=Random(2))  # another process
        if session.is_idle:
            continue
        plan = session.plan()
        codec = FetchRequest.codec(17)
        request = codec.parse(bytearray(codec.build(_fetch_request(plan, SETTINGS))))
        try:
            context = cache.open(request, 17, privileged=True)
            found = {
                (target.topic_id, target.index): target.fetch_offset for target in context.targets
            }
            session_id = context.answer([])[0]
        except KafkaError as error:
            assert not session.answered(error.code, 0)
            continue
        assert found == {
            (known.topic_id, tp.partition): known.fetch_offset for tp, known in wanted.items()
        }
        if data.draw(st.integers(0, 6)) == 0:
            session.start_over()  # the answer is lost
        else:
            assert session.answered(ErrorCode.NONE, session_id)
