"""One request from `Peer.ask` to its reply.

    waiting  ->  sent  ->  replied
       |          |
       +----------+------> failed, or dropped by its caller

`reply` fires once, with a frame, or with the error that the caller gets. Errors are kept as values:
several callers may get the same one, and a raised exception belongs to one frame stack.
"""

from enum import Enum
from typing import Any, Final

from broker.peers.peer import PeerError
from protocol.api_keys import ApiKey
from protocol.errors import ProtocolError
from protocol.messages.registry import request_codec, response_codec, spec
from protocol.schema import Message
from protocol.schema.parse_code import ManyElements
from storage.waits import PAUSE, Signal

_PARSED_PER_PAUSE: Final = 16
"""Elements between two pauses: some ten microseconds."""
LARGE: Final = frozenset((ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA))
"""Requests that may name every partition of a cluster: they are built in turns."""


class Late(Enum):
    """The reply of a request that was not answered in time."""

    LATE = "late"


LATE: Final = Late.LATE
Frame = tuple[bytes | bytearray, memoryview, int, int]
"""(buffer, a view of it, offset of the response's body, end)."""


class PeerRequest:
    """A request that waits, or is under way."""

    __slots__ = ("correlation_id", "dropped", "key", "reply", "request", "version")

    def __init__(self, key: ApiKey, request: Message | None, version: int | None) -> None:
        """`request` is None if only a connection is wanted."""
        self.key = key
        self.request = request
        """None once it was built."""
        self.version = version
        """None until the connection has chosen one."""
        self.correlation_id = -1
        """-1 until it was sent."""
        self.reply: Signal[Frame | PeerError | Late | None] = Signal()
        self.dropped = False
        """Nobody waits for the reply any more."""

    @property
    def name(self) -> str:
        """The API's, for errors."""
        return spec(self.key).message

    def pieces(self) -> list[Any]:
        """Build the request at once. Raises what its codec raises: the caller's bug."""
        assert self.version is not None
        built: list[Any] = []
        request_codec(self.key, self.version).build_into(self.request, built.append)
        self.request = None
        return built

    async def pieces_in_turns(self) -> list[Any]:
        """Build the request, giving way to others."""
        assert self.version is not None
        built: list[Any] = []
        for _ in request_codec(self.key, self.version).build_steps(self.request, built.append):
            await PAUSE
        self.request = None
        return built

    async def parsed(self, frame: Frame) -> Message:
        """Parse the reply, in turns if it is large. Raises PeerError."""
        assert self.version is not None
        buffer, view, start, end = frame
        codec = response_codec(self.key, self.version)
        try:
            try:
                response, stop = codec.parse_small_at(buffer, view, start, end)
            except ManyElements:
                response, stop = await _in_turns(codec.parse_steps(buffer, view, start, end))
        except ProtocolError as error:
            raise PeerError(f"an answer to {self.name} that is none: {error}") from None
        if stop != end:
            raise PeerError(f"an answer to {self.name} with {end - stop} bytes left over")
        message: Message = response
        return message


async def _in_turns(steps: Any) -> tuple[Any, int]:
    for count, step in enumerate(steps, 1):
        if step is not None:
            return step[0], step[1]
        if count % _PARSED_PER_PAUSE == 0:
            await PAUSE
    raise AssertionError("parsing ends with a value")
