"""A connection's state decides its next step without a stream: driven by hand, byte by byte."""

import itertools
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.activity import Activity, Ending, State
from broker.network.backlog import TURN_REPLY_BYTES, Backlog
from broker.network.buffers import STANDARD_BYTES, BufferPool
from broker.network.connection_state import CONNECTION_TURN_S, ConnectionState, Step
from broker.network.frame_memory import FrameMemory
from broker.network.receive_buffer import ReceiveBuffer
from broker.network.request_memory import Claim, RequestMemory
from broker.quotas.throttle import Throttle
from protocol.errors import ProtocolError

LIMIT = 200_000


def frame(content: bytes) -> bytes:
    body = b"\0" * 8 + content  # no request is shorter than its header
    return struct.pack(">i", len(body)) + body


class Driver:
    """Does what the state says, on bytes that a test gives; time is a number."""

    def __init__(
        self,
        *,
        memory: RequestMemory | None = None,
        frames: FrameMemory | None = None,
        backlog: Backlog | None = None,
        slow: bool = False,
    ) -> None:
        """`slow`: the client takes no reply at once."""
        self.slow = slow
        self.reply_bytes = 0
        self.now = 1.0
        self.seen: list[bytes] = []
        self.log: list[Step] = []
        self.ready: list[bytes] = []
        self.behave: Callable[[bytes], Any] = lambda content: None
        self.activity = Activity(self.now)
        self.state = ConnectionState(
            self.activity,
            ReceiveBuffer(BufferPool(check=True), frames or FrameMemory(1 << 30), backlog=backlog),
            self.handle,
            self.ready,
            max_request_bytes=LIMIT,
            claim=None if memory is None else Claim(memory),
        )
        self.step = self.state.begin()

    def handle(self, buffer: bytearray, view: memoryview, start: int, end: int, now: float) -> Any:
        content = bytes(view[start + 8 : end])
        self.seen.append(content)
        waiting = self.behave(content)
        if waiting is None:
            self.ready.append(content)
            self.activity.unsent += self.reply_bytes
        return waiting

    def receive(self, data: bytes) -> int:
        """Receive as many bytes as there is room for; return their number."""
        assert self.step is Step.RECEIVE
        room = self.state.incoming.view[self.state.incoming.have : self.state.end]
        size = min(len(room), len(data))
        room[:size] = data[:size]
        del room
        self.told(self.state.received(size, self.now))
        return size

    def told(self, step: Step) -> None:
        self.step = step
        self.log.append(step)

    def go_on(self) -> None:
        """All steps that need nothing from outside."""
        while self.step in (Step.SEND, Step.YIELD):
            if self.step is Step.SEND:
                if self.slow:
                    self.state.blocked(self.activity.unsent)
                self.ready.clear()
                self.activity.unsent = 0
                self.told(self.state.sent())
            else:
                self.told(self.state.yielded(self.now))

    def feed(self, data: bytes) -> None:
        """Receive all of it, and do what follows."""
        while data:
            data = data[self.receive(data) :]
            self.go_on()

    def idle(self) -> None:
        """Nothing comes for a while, and then something."""
        self.state.nothing_came()
        self.told(self.state.resumed())


@pytest.fixture
def driver() -> Driver:
    return Driver()


CONTENTS = [b"", b"a", b"bc" * 100, b"d" * 20_000, b"e" * 140_000, b"f"]
STREAM = b"".join(map(frame, CONTENTS))


@given(
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=12),
    idle=st.booleans(),
    slow=st.booleans(),
    most=st.sampled_from([0, 1 << 20]),
)
def test_s_net_1_any_cut_of_the_bytes_gives_the_same_frames_in_the_same_order(
    cuts: list[int], idle: bool, slow: bool, most: int
) -> None:
    backlog = Backlog(most)
    backlog.add(1)
    driver = Driver(slow=slow, backlog=backlog)
    driver.reply_bytes = 10
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(edges):
        driver.feed(STREAM[start:end])
        if idle:
            driver.idle()
    assert driver.seen == CONTENTS
    assert backlog.bytes == 1


def test_no_view_of_a_buffer_is_left_when_a_frame_outgrows_it(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.feed(frame(b"x" * 140_000))
    assert driver.seen == [b"x" * 140_000]
    assert [record.message for record in caplog.records] == []  # the pool checks


@pytest.mark.parametrize("content", [b"", b"content"])
def test_a_frame_comes_whole_byte_by_byte_or_with_a_tail(content: bytes) -> None:
    data = frame(content)
    whole, slowly, tail = Driver(), Driver(), Driver()
    whole.feed(data)
    for at in range(len(data)):
        assert slowly.seen == []
        slowly.feed(data[at : at + 1])
        slowly.idle()
    tail.feed(data + data[:5])
    assert whole.seen == slowly.seen == tail.seen == [content]
    tail.feed(data[5:])
    assert tail.seen == [content] * 2


def test_all_frames_of_one_receive_are_answered_in_one_send(driver: Driver) -> None:
    driver.receive(frame(b"1") + frame(b"2") + frame(b"3"))
    assert driver.step is Step.SEND
    assert driver.ready == [b"1", b"2", b"3"]
    driver.go_on()
    assert driver.log == [Step.SEND, Step.RECEIVE]


@pytest.mark.parametrize("size", [-5, 0, 7, LIMIT + 1])
def test_s_net_1_a_length_of_no_request_ends_it_and_the_frames_before_were_handled(
    driver: Driver, size: int
) -> None:
    with pytest.raises(ProtocolError):
        driver.receive(frame(b"1") + struct.pack(">i", size) + frame(b"2"))
    assert driver.seen == [b"1"]
    assert driver.activity.ending is Ending.BAD_BYTES
    assert driver.state.sent() is Step.CLOSE
    assert driver.seen == [b"1"]


def test_bad_bytes_in_a_frame_end_it_as_well(driver: Driver) -> None:
    def bad(content: bytes) -> None:
        raise ProtocolError("no request")

    driver.behave = bad
    with pytest.raises(ProtocolError):
        driver.receive(frame(b"1") + frame(b"2"))
    assert driver.seen == [b"1"]
    assert driver.activity.ending is Ending.BAD_BYTES


@pytest.mark.parametrize("parked", [False, True])
def test_s_net_1_what_is_waited_for_holds_back_the_frames_behind_it(
    driver: Driver, parked: bool
) -> None:
    driver.behave = lambda content: "later" if content == b"2" else None
    driver.receive(frame(b"1") + frame(b"2") + frame(b"3") + frame(b"4")[:6])
    assert driver.step is Step.FINISH
    assert driver.state.waiting == "later"
    assert driver.seen == [b"1", b"2"]
    if parked:
        driver.state.parked(released=True)
        assert driver.activity.state is State.PARKED
    driver.activity.last = driver.now = 5.0
    driver.told(driver.state.finished())
    assert driver.seen == [b"1", b"2", b"3"]
    driver.go_on()
    driver.feed(frame(b"4")[6:])
    assert driver.seen == [b"1", b"2", b"3", b"4"]


def test_after_a_parked_reply_without_bytes_behind_it_there_is_room_again(driver: Driver) -> None:
    driver.behave = lambda content: "later"
    driver.receive(frame(b"1"))
    driver.state.parked(released=True)
    driver.ready.append(b"1")
    driver.told(driver.state.finished())
    driver.go_on()
    assert driver.step is Step.RECEIVE
    assert driver.receive(frame(b"2")) > 0


def test_after_a_reply_that_a_worker_made_the_next_frame_is_found(driver: Driver) -> None:
    driver.behave = lambda content: "later" if content == b"1" else None
    driver.receive(frame(b"1"))
    driver.ready.append(b"1")
    driver.told(driver.state.finished())
    driver.go_on()
    driver.feed(frame(b"2"))
    assert driver.seen == [b"1", b"2"]


class FakeQuota:
    throttled = 0

    def note_throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("behind", [b"", frame(b"2"), frame(b"2") + frame(b"3")[:5]])
def test_s_qta_3_a_throttled_client_is_answered_and_then_not_heard(behind: bytes) -> None:
    memory = RequestMemory(1000)
    driver, throttle = Driver(memory=memory), Throttle(FakeQuota(), 9.0)

    def behave(content: bytes) -> Any:
        driver.ready.append(content)
        return throttle if content == b"1" else None

    driver.behave = behave
    driver.receive(frame(b"1") + behind)
    assert (driver.step, driver.state.waiting) == (Step.THROTTLE, throttle)
    assert driver.ready == [b"1"]  # it is sent before anything is waited for
    driver.ready.clear()
    driver.state.throttled()
    assert driver.activity.state is State.THROTTLED
    assert driver.activity.may_end_at_once
    assert driver.seen == [b"1"]
    assert memory.statistics().used == 0
    assert driver.state.incoming.have == len(behind)
    driver.activity.last = driver.now = 9.0
    driver.told(driver.state.finished())
    assert driver.activity.state is State.BUSY
    driver.go_on()
    assert driver.seen == [b"1", b"2"] if behind else [b"1"]
    driver.feed((frame(b"2") + frame(b"3"))[len(behind) :])
    assert driver.seen == [b"1", b"2", b"3"]


@pytest.mark.parametrize("released", [False, True])
def test_s_qta_3_a_throttle_after_a_reply_that_was_waited_for(released: bool) -> None:
    driver, throttle = Driver(), Throttle(FakeQuota(), 9.0)
    driver.behave = lambda content: "later" if content == b"1" else None
    driver.receive(frame(b"1") + frame(b"2"))
    assert driver.step is Step.FINISH
    if released:
        driver.state.parked(released=True)
    driver.ready.append(b"1")
    driver.told(driver.state.finished(throttle))
    assert (driver.step, driver.state.waiting) == (Step.THROTTLE, throttle)
    driver.ready.clear()
    driver.state.throttled()
    assert driver.seen == [b"1"]
    driver.told(driver.state.finished())
    driver.go_on()
    assert driver.seen == [b"1", b"2"]


def test_a_wait_is_the_end_of_a_turn(driver: Driver) -> None:
    driver.behave = lambda content: "later" if content == b"1" else None
    driver.receive(frame(b"1") + frame(b"2"))
    driver.activity.last = driver.now = driver.now + 100 * CONNECTION_TURN_S
    driver.told(driver.state.finished())
    driver.go_on()
    assert driver.seen == [b"1", b"2"]
    assert Step.YIELD not in driver.log


def test_a_frame_whose_size_is_known_claims_all_its_memory() -> None:
    memory = RequestMemory(1000)
    driver = Driver(memory=memory)
    data = frame(b"m" * 500)
    driver.feed(data[:3])
    assert memory.statistics().used == 0  # its size is not known yet
    driver.feed(data[3:10])
    assert memory.statistics().used == len(data)
    driver.feed(data[10:])
    assert memory.statistics().used == 0


@pytest.mark.parametrize("rest", [b"", frame(b"3")[:7]])
def test_a_long_turn_is_cut_between_frames_and_goes_on_after_the_others(
    driver: Driver, rest: bytes
) -> None:
    def work(content: bytes) -> None:
        driver.now = driver.activity.last = driver.now + 1.5 * CONNECTION_TURN_S

    driver.behave = work
    driver.receive(frame(b"1") + frame(b"2") + rest)
    assert driver.seen == [b"1"]
    driver.go_on()
    assert driver.seen == [b"1", b"2"]
    assert driver.log[:4] == [Step.SEND, Step.YIELD, Step.SEND, Step.YIELD]
    assert driver.step is Step.RECEIVE


@pytest.mark.parametrize(
    ("kept", "reply_bytes", "turn"),
    [
        (100, TURN_REPLY_BYTES, [b"1", b"2"]),  # more than that only with the second
        (100, TURN_REPLY_BYTES + 1, [b"1"]),
        (101, 1, [b"1"]),
        (101, 0, [b"1", b"2", b"3"]),
    ],
)
def test_a_turn_ends_by_its_replies(kept: int, reply_bytes: int, turn: list[bytes]) -> None:
    """At once, if all connections keep more than the limit."""
    backlog = Backlog(100)
    backlog.add(kept)
    driver = Driver(backlog=backlog)
    driver.reply_bytes = reply_bytes
    driver.receive(frame(b"1") + frame(b"2") + frame(b"3"))
    assert driver.seen == turn
    driver.go_on()
    assert driver.seen == [b"1", b"2", b"3"]
    assert backlog.bytes == kept


def test_a_client_that_takes_no_replies_has_its_requests_kept_and_no_buffer() -> None:
    backlog, memory = Backlog(), RequestMemory(1000)
    driver = Driver(backlog=backlog, memory=memory)
    driver.reply_bytes = 100_000
    driver.receive(frame(b"1") + frame(b"2"))
    assert (driver.step, driver.seen) == (Step.SEND, [b"1"])
    driver.state.blocked(90_000)
    assert backlog.bytes == 90_000 + len(frame(b"2"))
    assert len(driver.state.incoming.buffer) < 5_000
    assert memory.statistics().used == 0
    driver.ready.clear()
    driver.told(driver.state.sent())
    driver.go_on()
    assert driver.seen == [b"1", b"2"]
    assert backlog.bytes == 0


def test_a_request_in_work_keeps_its_bytes_while_the_replies_before_it_are_not_taken() -> None:
    backlog = Backlog()
    driver = Driver(backlog=backlog)
    driver.behave = lambda content: "later" if content == b"2" else None
    driver.receive(frame(b"1") + frame(b"2"))
    before = driver.state.incoming.buffer
    driver.state.blocked(77)
    assert driver.state.incoming.buffer is before
    assert backlog.bytes == 77
    driver.told(driver.state.finished())
    assert backlog.bytes == 0


def test_bytes_that_an_error_may_refer_to_are_not_given_back(driver: Driver) -> None:
    with pytest.raises(ProtocolError):
        driver.receive(frame(b"1") + struct.pack(">i", -5))
    before = driver.state.incoming.buffer
    driver.state.blocked(77)
    assert driver.state.incoming.buffer is before


@pytest.mark.parametrize("parked", [True, False])
def test_requests_sent_ahead_count_while_they_wait(parked: bool) -> None:
    backlog, ahead = Backlog(), frame(b"2" * 1000) + frame(b"3" * 1000)
    driver = Driver(backlog=backlog)
    if parked:
        driver.behave = lambda content: "later" if content == b"1" else None
    else:
        driver.reply_bytes = TURN_REPLY_BYTES + 1
    driver.receive(frame(b"1") + ahead)
    if parked:
        driver.state.parked(released=True)
    else:
        driver.ready.clear()
        driver.activity.unsent = 0
        assert driver.state.sent() is Step.YIELD
    assert backlog.bytes == len(ahead)
    driver.state.incoming.close(reusable=False)
    assert backlog.bytes == 0


@pytest.mark.parametrize("kept", [0, 1])
def test_a_cut_connection_keeps_only_its_bytes_while_connections_keep_too_much(kept: int) -> None:
    backlog = Backlog(len(frame(b"2")))
    driver = Driver(backlog=backlog)
    driver.reply_bytes = TURN_REPLY_BYTES + 1
    driver.receive(frame(b"1") + frame(b"2"))
    backlog.add(backlog._most + kept)
    assert driver.state.sent() is Step.YIELD
    assert (len(driver.state.incoming.buffer) < STANDARD_BYTES) == (kept > 0)
    driver.told(driver.state.yielded(driver.now))
    assert driver.seen == [b"1", b"2"]


def test_short_turns_add_up_until_nothing_comes(driver: Driver) -> None:
    turns = 4

    def work(content: bytes) -> None:
        driver.now = driver.activity.last = driver.now + CONNECTION_TURN_S / (turns - 0.5)

    driver.behave = work
    for _ in range(turns):
        driver.feed(frame(b"x"))
    assert driver.log.count(Step.YIELD) == 1
    driver.log.clear()
    for _ in range(turns):
        driver.feed(frame(b"x"))
        driver.idle()
    assert Step.YIELD not in driver.log


@pytest.mark.parametrize("reason", [Ending.HANDLER, Ending.SERVER])
def test_after_its_end_replies_are_sent_and_nothing_is_handled(
    driver: Driver, reason: Ending
) -> None:
    driver.behave = lambda content: driver.activity.end(reason)
    driver.receive(frame(b"1") + frame(b"2"))
    assert driver.step is Step.SEND
    driver.go_on()
    assert driver.step is Step.CLOSE
    assert driver.state.sent() is Step.CLOSE
    assert driver.state.resumed() in (Step.CLOSE, Step.RECEIVE)
    assert driver.seen == [b"1"]
    driver.activity.end(Ending.IDLE)
    assert driver.activity.ending is reason  # the first one stays


def test_a_client_that_sends_no_more_is_done_with(driver: Driver) -> None:
    driver.feed(frame(b"1")[:5])
    assert driver.state.client_ended() is Step.CLOSE
    assert driver.activity.ending is Ending.CLIENT


@given(others=st.integers(1, 2000), cut=st.integers(1, 20))
def test_a_connection_that_is_muted_receives_when_memory_is_left_and_not_before(
    others: int, cut: int
) -> None:
    memory = RequestMemory(1000)
    driver = Driver(memory=memory)
    data = frame(b"m" * 30)
    driver.feed(data)
    memory.take(others)
    driver.idle()
    if others < 1000:
        assert driver.step is Step.RECEIVE
        driver.feed(data[:cut])
        memory.take(2000)
        driver.feed(data[cut:])  # who holds memory may come to its end
        assert driver.seen == [b"m" * 30] * 2
        return
    for _ in range(3):
        assert driver.step is Step.WAIT_FOR_MEMORY
        assert driver.activity.state is State.MUTED
        driver.told(driver.state.resumed())
    memory._available += others
    driver.told(driver.state.resumed())
    assert driver.step is Step.RECEIVE
    assert driver.activity.state is State.BUSY


def test_a_large_frame_waits_for_a_window_and_a_small_one_does_not() -> None:
    frames = FrameMemory(50_000)
    first, second, small = (Driver(frames=frames) for _ in range(3))
    large = frame(b"l" * 100_000)
    first.receive(large[:20_000])
    assert first.step is Step.RECEIVE
    assert first.state.end == len(large)
    second.receive(large[:20_000])  # no memory is left, and one goes on without
    assert second.step is Step.RECEIVE
    third = Driver(frames=frames)
    third.receive(large[:8_000])
    for _ in range(3):
        assert third.step is Step.WAIT_FOR_WINDOW
        assert third.activity.state is State.MUTED
        third.told(third.state.resumed())
    small.feed(frame(b"small"))
    assert small.seen == [b"small"]
    for driver in (first, second):
        driver.feed(large[20_000:])
    third.told(third.state.resumed())
    third.feed(large[8_000:])
    assert third.seen == [b"l" * 100_000]
    assert frames.held == 0


def test_a_stuck_or_overdue_connection_differs_from_one_at_work(driver: Driver) -> None:
    driver.state.nothing_came()
    assert driver.state.is_stuck(driver.now + 11, 10)
    assert not driver.state.is_stuck(driver.now + 9, 10)
    assert driver.state.close()  # nothing is in work: at once
    driver.activity.state = State.BUSY
    assert not driver.state.is_stuck(driver.now + 11, 10)
    assert not driver.state.close()


def test_a_connection_that_is_closed_while_the_others_have_their_turn_receives_no_more(
    driver: Driver,
) -> None:
    def take_the_turn(content: bytes) -> None:
        driver.activity.last += 2 * CONNECTION_TURN_S

    driver.behave = take_the_turn
    driver.receive(frame(b"1"))
    assert driver.step is Step.SEND
    driver.ready.clear()
    assert driver.state.sent() is Step.YIELD
    driver.state.close()
    assert driver.state.yielded(driver.activity.last) is Step.CLOSE


@pytest.mark.parametrize("blocked_first", [False, True])
def test_a_reply_that_is_made_ahead_counts_with_what_the_client_does_not_take(
    blocked_first: bool,
) -> None:
    backlog = Backlog()
    driver = Driver(backlog=backlog)
    driver.behave = lambda content: "waits"
    driver.feed(frame(b"a"))
    assert driver.step is Step.FINISH
    steps = [lambda: driver.state.blocked(3_000), lambda: driver.state.made_ahead(500)]
    for step in steps if blocked_first else reversed(steps):
        step()
    assert backlog.bytes == 3_500
