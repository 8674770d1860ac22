"""Streams in memory against the obvious model: two queues of bytes, and how each of them ends.

Arbitrary pieces are sent and received at both ends, with ends, half-ends, resets, pauses and deaths
in between. What is compared after each step: the result or the error, and who of those that wait
for a stream was woken.
"""

import errno
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from broker.world.streams import receive_some, send_all
from broker.world.transport import SYSTEM_DEFAULT
from config.listener import Listener
from tests.support.memory_stream import MemoryStream
from tests.support.memory_transport import MemoryNetwork, MemoryTransport

CAPACITY = 10
BLOCKED = ("error", errno.EAGAIN)


@dataclass(eq=False)
class End:
    """What is true of one end, and the real thing."""

    process: MemoryTransport
    stream: MemoryStream
    inbox: bytes = b""
    half_closed: bool = False
    """It has said that it sends no more."""
    gone: bool = False
    """Closed or reset from here."""
    was_reset: bool = False
    """By the other end."""
    paused: bool = False
    dead: bool = False
    other: "End" = field(init=False)

    # ---- what should be

    def may_receive(self) -> object:
        """What receiving finds: bytes, True for the end, or an error."""
        if self.paused or self.dead:
            return BLOCKED
        if self.gone:
            return "error", errno.EBADF
        if self.inbox:
            return self.inbox
        if self.was_reset:
            return "error", errno.ECONNRESET
        return True if self.other.half_closed or self.other.gone else BLOCKED

    def may_send(self) -> object:
        """How many bytes sending could take, or an error."""
        if self.paused or self.dead:
            return BLOCKED
        if self.gone:
            return "error", errno.EBADF
        if self.was_reset:
            return "error", errno.ECONNRESET
        if self.half_closed or self.other.gone:
            return "error", errno.EPIPE
        return CAPACITY - len(self.other.inbox)

    # ---- what is done to both

    def send(self, data: bytes) -> None:
        expected = self.may_send()
        if isinstance(expected, int):
            expected = min(expected, len(data))
            if data and not expected:
                expected = BLOCKED
            else:
                self.other.inbox += data[:expected]
        assert outcome(lambda: self.stream.send(data)) == expected

    def receive(self, size: int) -> None:
        expected = self.may_receive()
        if isinstance(expected, bytes):
            expected = expected[:size]
            self.inbox = self.inbox[size:]
        elif expected is True:
            expected = b""
        buffer = bytearray(size)
        found = outcome(lambda: bytes(buffer[: self.stream.recv_into(memoryview(buffer))]))
        assert found == expected

    def look(self) -> None:
        expected = self.may_receive()
        if isinstance(expected, bytes):
            expected = False
        assert outcome(self.stream.has_ended) == expected
        closed = self.other.half_closed or self.other.gone
        if not self.gone:
            running = not self.paused and not self.dead
            assert self.stream.peer_has_closed() == (closed and running)

    def send_eof(self) -> None:
        if not self.gone:
            self.half_closed = True
            self.stream.send_eof()

    def close(self) -> None:
        if self.inbox and not self.gone:
            self.other.was_reset = True
        self._go()
        self.stream.close()

    def abort(self) -> None:
        if not self.gone:
            self.other.was_reset = True
        self._go()
        self.stream.abort()

    def kill(self) -> None:
        if not self.gone:
            self.other.was_reset = True
        self._go()
        self.dead = True
        self.process.kill()

    def pause(self) -> None:
        self.paused = True
        self.process.freeze()

    def resume(self) -> None:
        self.paused = False
        self.process.thaw()

    def _go(self) -> None:
        self.gone = True
        self.inbox = b""


def outcome(action: Callable[[], Any]) -> object:
    """The result, or which error."""
    try:
        return action()
    except OSError as error:
        return "error", error.errno


def connected(capacity: int = CAPACITY) -> tuple[End, End]:
    network = MemoryNetwork(buffer_bytes=capacity)
    client, server = MemoryTransport(network), MemoryTransport(network)
    listener = Listener(name="PLAINTEXT", host="b", port=1, protocol="PLAINTEXT")
    listening = server.listen(
        listener, backlog=1, send_buffer=SYSTEM_DEFAULT, receive_buffer=SYSTEM_DEFAULT
    )
    ends = End(client, client.connect("b", 1)), End(server, listening.accept())
    ends[0].other, ends[1].other = ends[1], ends[0]
    return ends


class Waiters:
    """A task for each end and direction that waits, as a connection's would."""

    def __init__(self, nursery: trio.Nursery, ends: tuple[End, End]) -> None:
        self._nursery = nursery
        self._waiting: dict[tuple[End, str], trio.CancelScope] = {}
        self._ends = ends

    async def wait(self) -> None:
        """Somebody waits at each end that is open."""
        for end, what in itertools.product(self._ends, ("readable", "writable")):
            if not end.gone and (end, what) not in self._waiting:
                self._waiting[end, what] = trio.CancelScope()
                self._nursery.start_soon(self._wait, end, what)
        await wait_all_tasks_blocked()

    async def _wait(self, end: End, what: str) -> None:
        with self._waiting[end, what]:
            await getattr(end.stream, f"wait_{what}")()
            assert not _in_vain(end, what), f"{what} was woken for nothing"
            del self._waiting[end, what]

    async def leave(self, end: End) -> None:
        """Nobody waits for a stream that is closed from here."""
        for what in ("readable", "writable"):
            if (end, what) in self._waiting:
                self._waiting.pop((end, what)).cancel()
        await wait_all_tasks_blocked()

    async def check(self) -> None:
        """Who waits in vain still waits, and nobody else."""
        await wait_all_tasks_blocked()
        for end, what in self._waiting:
            assert _in_vain(end, what), f"{what} was not woken"


def _in_vain(end: End, what: str) -> bool:
    found = end.may_receive() if what == "readable" else end.may_send()
    return found in (BLOCKED, 0)


pieces = st.binary(max_size=CAPACITY + 3) | st.just(bytes(range(CAPACITY)))
sizes = st.integers(1, CAPACITY + 3)
steps = st.one_of(
    st.tuples(st.just("send"), pieces),
    st.tuples(st.just("receive"), sizes),
    st.tuples(st.just("send"), pieces),
    st.tuples(st.just("receive"), sizes),
    st.tuples(st.sampled_from(["send_eof", "close", "abort", "pause", "resume", "kill"])),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), steps), min_size=10, max_size=30))
def test_a_pair_of_streams_agrees_with_two_queues(
    script: list[tuple[int, tuple[Any, ...]]],
) -> None:
    async def main() -> None:
        ends = connected()
        async with trio.open_nursery() as nursery:
            waiters = Waiters(nursery, ends)
            for which, (name, *arguments) in script:
                end = ends[which]
                await waiters.wait()
                await waiters.check()
                if name in ("close", "abort"):
                    await waiters.leave(end)
                getattr(end, name)(*arguments)
                for each in ends:
                    each.look()
                await waiters.check()
            nursery.cancel_scope.cancel()

    trio.run(main)


@settings(deadline=None)
@given(
    content=st.tuples(st.binary(max_size=200), st.binary(max_size=200)),
    sent_at_once=st.lists(sizes, min_size=1, max_size=5),
    received_at_once=st.lists(sizes, min_size=1, max_size=5),
    capacity=st.integers(1, 20),
)
def test_whatever_the_pieces_all_bytes_arrive_in_order(
    content: tuple[bytes, bytes],
    sent_at_once: list[int],
    received_at_once: list[int],
    capacity: int,
) -> None:
    arrived: dict[int, bytes] = {0: b"", 1: b""}

    async def send(stream: MemoryStream, data: bytes) -> None:
        for size in itertools.cycle(sent_at_once):
            if not data:
                break
            await send_all(stream, data[:size])
            data = data[size:]
        stream.send_eof()

    async def receive(stream: MemoryStream, which: int) -> None:
        for size in itertools.cycle(received_at_once):
            buffer = bytearray(size)
            count = await receive_some(stream, memoryview(buffer))
            if not count:
                return
            arrived[which] += buffer[:count]

    async def main() -> None:
        ends = connected(capacity)
        async with trio.open_nursery() as nursery:
            for which, end in enumerate(ends):
                nursery.start_soon(send, end.stream, content[which])
                nursery.start_soon(receive, end.other.stream, which)

    trio.run(main)
    assert (arrived[0], arrived[1]) == content
