"""A broker that a test writes: it listens on a transport and answers by a function.

    async with fake_broker(net.transport, answers) as broker:
        ...                                  # broker.port, broker.asked, broker.connections

ApiVersions is answered by itself. A function may return a response, `SILENCE`, or `HANG_UP`.
"""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from broker.world.streams import send_all
from broker.world.transport import SYSTEM_DEFAULT, Listening, Stream, Transport
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.framing import parse_request_header, response_header_is_flexible
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.messages.registry import SPECS, request_codec, response_codec
from tests.support.memory_client import receive_frame

SILENCE: Final = object()
HANG_UP: Final = object()
Answer = Callable[[int, int, Any], Awaitable[Any]]
"""To API key, version and request: the response."""
EVERYTHING: Final = {key: (spec.min_version, spec.max_version) for key, spec in SPECS.items()}


class FakeBroker:
    """See the module."""

    def __init__(
        self,
        listening: Listening,
        answer: Answer,
        versions: Mapping[int, tuple[int, int]],
        secure: Callable[[Stream], Stream],
    ) -> None:
        self.port = listening.bound.port
        self.asked: list[tuple[int, int, Any]] = []
        """(API key, version, request) of each, but for ApiVersions."""
        self.client_ids: list[str | None] = []
        self.connections = 0
        self.streams: list[Stream] = []
        self._listening = listening
        self._answer = answer
        self._versions = versions
        self._secure = secure

    def endpoint(self, host: str = "127.0.0.1", protocol: str = "PLAINTEXT") -> Listener:
        """Return the address to dial."""
        return Listener(name="PLAINTEXT", host=host, port=self.port, protocol=protocol)

    async def run(self, nursery: trio.Nursery) -> None:
        while True:
            try:
                stream = self._listening.accept()
            except BlockingIOError:
                await self._listening.wait_acceptable()
                continue
            self.connections += 1
            stream = self._secure(stream)
            self.streams.append(stream)
            nursery.start_soon(self._serve, stream)

    async def _serve(self, stream: Stream) -> None:
        try:
            while True:
                frame = await receive_frame(stream)
                key, version, correlation_id, client_id, body = parse_request_header(
                    frame, memoryview(frame), 0, len(frame)
                )
                request = request_codec(key, version).parse(frame[body:])
                if key == ApiKey.API_VERSIONS:
                    self.client_ids.append(client_id)
                    response: Any = ApiVersionsResponse(
                        api_keys=[
                            ApiVersion(api_key=one, min_version=low, max_version=high)
                            for one, (low, high) in self._versions.items()
                        ]
                    )
                else:
                    self.asked.append((key, version, request))
                    response = await self._answer(key, version, request)
                if response is SILENCE:
                    continue
                if response is HANG_UP:
                    return
                await send_all(stream, reply_frame(key, version, correlation_id, response))
        except OSError:
            pass
        finally:
            stream.close()


def reply_frame(key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """The frame of a response, which may also be bytes."""
    body = response
    if not isinstance(response, bytes):
        body = response_codec(key, version).build(response)
    head = struct.pack(">i", correlation_id)
    if response_header_is_flexible(key, version):
        head += b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


@asynccontextmanager
async def fake_broker(
    transport: Transport,
    answer: Answer,
    *,
    port: int = 0,
    versions: Mapping[int, tuple[int, int]] = EVERYTHING,
    secure: Callable[[Stream], Stream] = lambda stream: stream,
) -> AsyncIterator[FakeBroker]:
    """Run a broker on 127.0.0.1. `secure` wraps an accepted stream, with TLS for example."""
    listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=port, protocol="PLAINTEXT")
    listening = transport.listen(
        listener, backlog=10, send_buffer=SYSTEM_DEFAULT, receive_buffer=SYSTEM_DEFAULT
    )
    broker = FakeBroker(listening, answer, versions, secure)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.run, nursery)
        try:
            yield broker
        finally:
            nursery.cancel_scope.cancel()
            listening.close()
