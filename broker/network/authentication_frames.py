"""Frames of a connection that authenticates: each is admitted or refused before its header is
parsed (decision 93).

`AuthenticationFrames` stands before `RequestHandling` until the client has proved who it is, and
longer if its session has an end. The `Authenticator` decides by the API key alone (`admit`). It
gets frames without header, which follow SaslHandshake v0, unchanged.
"""

import struct
from typing import Any, Final

from broker.network.activity import Activity, Ending
from broker.network.buffers import PoolBuffer
from broker.network.pending_request import PendingRequest
from broker.network.request_handling import RequestHandling
from broker.network.routes import Route
from broker.quotas.throttle import Throttle
from broker.request import ConnectionInfo, RequestContext, reply_of
from broker.security.authentication.authenticator import Admission, Authenticator
from protocol.errors import FrameSizeError, ProtocolError
from protocol.framing import MIN_REQUEST_SIZE
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.schema import Message
from storage.waits import Work

_KEY: Final = struct.Struct(">h").unpack_from
_NO_KEY: Final = -1


class AuthenticationFrames:
    """The frames of one connection; a `Guard` of it."""

    __slots__ = ("_activity", "_authenticator", "_handling", "_info", "_raw")

    def __init__(
        self,
        authenticator: Authenticator,
        info: ConnectionInfo,
        raw: Route,
        handling: RequestHandling,
        activity: Activity,
    ) -> None:
        """`raw` answers frames without header."""
        self._authenticator = authenticator
        self._info = info
        self._raw = raw
        self._handling = handling
        self._activity = activity

    def handle(
        self, buffer: PoolBuffer, view: memoryview, start: int, end: int, now: float
    ) -> PendingRequest | Throttle | None:
        """See `RequestHandling.handle`."""
        authenticator = self._authenticator
        if authenticator.is_raw:
            return self._take_raw(bytes(view[start:end]), now)
        if end - start < MIN_REQUEST_SIZE:
            raise ProtocolError(f"a request of {end - start} bytes is too short")
        (key,) = _KEY(buffer, start)
        admission = authenticator.admit(key, now)
        if admission is Admission.HANDLED:
            return self._handling.handle(buffer, view, start, end, now)
        if admission is Admission.REFUSED:
            return self._refuse(key, now)
        if admission is Admission.EXPIRED:
            authenticator.note_expired()
            self._activity.end(Ending.SESSION)
        else:
            authenticator.note_closed(key)
            self._activity.end(Ending.STRANGER)
        return None

    def note_bad_bytes(self, error: ProtocolError) -> None:
        """See `Guard`."""
        if isinstance(error, FrameSizeError):
            self._authenticator.note_bad_size()
        else:
            self._authenticator.note_bad_bytes(str(error))

    def forget(self) -> None:
        """See `Guard`."""
        self._authenticator.forget()

    def _take_raw(self, message: bytes, now: float) -> PendingRequest:
        """Take a frame without header; a refused message gets no answer."""
        if self._authenticator.is_lost:
            return self._refuse(_NO_KEY, now)
        context = self._context(_NO_KEY, now)
        request = SaslAuthenticateRequest(auth_bytes=message)

        async def answer() -> Message | None:
            reply: Message = await reply_of(self._raw.handler(context, request))
            return None if context.close_connection else reply

        return self._pending(context, request, answer(), now)

    def _refuse(self, key: int, now: float) -> PendingRequest:
        context = self._context(key, now)
        return self._pending(context, None, self._authenticator.refuse(context), now)

    def _context(self, key: int, now: float) -> RequestContext:
        return RequestContext(key, 0, 0, None, self._info, now)

    def _pending(
        self, context: RequestContext, request: Any, work: Work[Any], now: float
    ) -> PendingRequest:
        route = self._raw
        route.metrics.requests += 1
        pending = PendingRequest(route, context, now)
        pending.request, pending.rest = request, work
        return pending
