"""The bytes of a TLS connection come out as they went in, however they are cut on their way.

Two ends over a pipe that gives as many bytes as Hypothesis says, now and then none at all;
receivers take pieces of any size.
"""

import errno
from collections import deque
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.world.readiness import READABLE, WRITABLE
from broker.world.tls_stream import TlsStream, scratch_memory
from broker.world.transport import Address
from tests.support.tls_network import _client_context, tls_listeners


class Now:
    """A clock that stands."""

    def wall_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic(self) -> float:
        return 0.0


class Pipe:
    """One end of a stream; both see the same cuts."""

    local = peer = Address("x", 1)
    source = None
    readable, writable = READABLE, WRITABLE
    sends_files = False
    tells_again = True

    def __init__(self, cuts: deque[int]) -> None:
        self.arrived = bytearray()
        self.other: Pipe
        self._cuts = cuts
        self.is_closed = False

    def _allowed(self) -> int:
        cut = self._cuts.popleft() if self._cuts else 1 << 20
        if not cut:
            raise BlockingIOError(errno.EAGAIN, "not now")
        return cut

    def recv_into(self, buffer: memoryview) -> int:
        if not self.arrived:
            if self.other.is_closed:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing")
        size = min(self._allowed(), len(buffer), len(self.arrived))
        buffer[:size] = self.arrived[:size]
        del self.arrived[:size]
        return size

    def send(self, data: Any) -> int:
        size = min(self._allowed(), len(data))
        self.other.arrived += bytes(data[:size])
        return size

    def close(self) -> None:
        self.is_closed = True


def ends(cuts: list[int]) -> tuple[TlsStream, TlsStream]:
    shared = deque(cuts)
    up, down = Pipe(shared), Pipe(shared)
    up.other, down.other = down, up
    listeners = tls_listeners(Now())  # type: ignore[arg-type]
    context = listeners._by_name["PLAINTEXT"].served.context
    scratch = scratch_memory()  # shared, as by all streams of a broker
    server = TlsStream(down, context, scratch)  # type: ignore[arg-type]
    client_context = _client_context(None, ("TLSv1.2", "TLSv1.3"))
    client = TlsStream(up, client_context, scratch, server_name="localhost")  # type: ignore[arg-type]
    return client, server


@settings(max_examples=60)
@given(
    cuts=st.lists(st.one_of(st.integers(0, 40), st.integers(0, 70_000)), max_size=400),
    messages=st.lists(
        st.one_of(st.integers(1, 300), st.integers(1, 200_000)), min_size=1, max_size=5
    ),
    rooms=st.lists(st.integers(1, 140_000), min_size=1, max_size=20),
)
def test_bytes_come_out_as_they_went_in(
    cuts: list[int], messages: list[int], rooms: list[int]
) -> None:
    client, server = ends(cuts)
    sent = b"".join(bytes([number % 251]) * size for number, size in enumerate(messages))
    for sender, receiver in ((client, server), (server, client)):
        left = memoryview(sent)
        got = bytearray()
        turns = 0
        while len(got) < len(sent) or left:
            turns += 1
            assert turns < len(cuts) + 2 * len(sent) + 1000
            if left:
                with suppress(BlockingIOError):
                    left = left[sender.send(left) :]
            buffer = memoryview(bytearray([*rooms, 140_000][turns % (len(rooms) + 1)]))
            try:
                size = receiver.recv_into(buffer)
            except BlockingIOError:
                assert receiver.tells_again
                # Let both ends send their part of the handshake, or what they have not sent yet.
                for end in (sender, receiver):
                    if not end.is_shaken:
                        try:
                            end.recv_into(memoryview(bytearray(1)))
                        except BlockingIOError:
                            continue
                        raise AssertionError("nothing was sent this way") from None
                    end.flush()
                continue
            assert size
            got += buffer[:size]
        assert got == sent
    client.send_end()
    client.flush()
    for _ in range(2):
        end = _received_at_the_end(server)
        assert end == 0
    server.close()


def _received_at_the_end(stream: TlsStream) -> int:
    for _ in range(1000):
        try:
            return stream.recv_into(memoryview(bytearray(10)))
        except BlockingIOError:
            continue
    raise AssertionError("no end came")
