"""A client on raw frames in the broker's own event loop, over a network in memory."""

import struct
from typing import Any, Final

from broker.world.streams import receive_some, send_all
from broker.world.transport import Stream
from tests.support.memory_stream import MemoryStream
from tests.support.memory_transport import MemoryNetwork, MemoryTransport
from tests.support.virtual_time import VirtualClock
from tests.support.wire_client import read_response, request_frame

HOST: Final = "broker"
PORT: Final = 9092
"""The port of brokers in memory."""
PATIENCE_S: Final = 60.0
_SIZE: Final = struct.Struct(">i")


class MemoryClient:
    """A connection that is reopened after it broke; a `Line` of `tests.anomalies.workload.raw`."""

    def __init__(
        self,
        network: MemoryNetwork,
        clock: VirtualClock,
        *,
        client_id: str = "client",
        host: str = "127.0.0.1",
        broker: str = HOST,
    ) -> None:
        """`host`: the address that the broker sees; `broker`: the one where it listens."""
        self._broker = broker
        self._host = host
        self._transport = MemoryTransport(network)
        self._clock = clock
        self.client_id = client_id
        self._stream: Stream | None = None
        self._correlation_id = 0
        self.monotonic = clock.monotonic
        self.wall_ms = clock.wall_ms
        self.pause = clock.sleep

    async def call(
        self, key: int, version: int, request: Any = None, patience_s: float = PATIENCE_S
    ) -> Any:
        """Send a request and return its answer. Raises OSError if there is none."""
        framed = self._framed(key, version, request)
        with self._clock.timeout(patience_s):
            echoed, response = read_response(key, version, await self._exchange(framed))
            assert echoed == self._correlation_id
            return response
        self.close()
        raise TimeoutError(f"no answer in {patience_s} s")

    async def send_only(self, key: int, version: int, request: Any) -> None:
        """Send a request; do not wait for an answer. Raises OSError."""
        await send_all(self._connected(), self._framed(key, version, request))

    def _framed(self, key: int, version: int, request: Any) -> bytes:
        self._correlation_id += 1
        number = self._correlation_id
        return request_frame(key, version, request, correlation_id=number, client_id=self.client_id)

    def _connected(self) -> Stream:
        if self._stream is None:
            self._stream = self._transport.connect(self._broker, PORT, from_host=self._host)
        return self._stream

    async def receive(self, key: int, version: int) -> Any:
        """Return the answer to the next request that `send_only` has sent. Raises OSError."""
        assert self._stream is not None
        return read_response(key, version, await receive_frame(self._stream))[1]

    def send_no_more(self) -> None:
        """Send the end of the stream, and go on receiving."""
        assert isinstance(self._stream, MemoryStream)
        self._stream.send_eof()

    async def _exchange(self, framed: bytes) -> bytes:
        try:
            if self._stream is not None and self._stream.peer_has_closed():
                self.close()
            stream = self._connected()
            await send_all(stream, framed)
            return await receive_frame(stream)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def die(self) -> None:
        """Reset the connection, as the death of the client's process does."""
        self._transport.kill()
        self._stream = None


async def receive_frame(stream: Stream) -> bytes:
    """Return the next frame, without its size. Raises ConnectionError if the stream ends."""
    (size,) = _SIZE.unpack(await _receive(stream, _SIZE.size))
    return bytes(await _receive(stream, size))


async def _receive(stream: Stream, size: int) -> bytearray:
    received = bytearray(size)
    view, have = memoryview(received), 0
    while have < size:
        some = await receive_some(stream, view[have:])
        if some == 0:
            raise ConnectionResetError("the peer hung up")
        have += some
    return received
