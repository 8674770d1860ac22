"""The authentication of one connection, as a state machine without stream or frames.

The connection calls `admit`, which decides about a request by its API key, before anything else of
it is read. The handlers of ApiVersions, SaslHandshake and SaslAuthenticate call the methods of
their names.

Rules (S-SEC-1; `org.apache.kafka.common.security.authenticator.SaslServerAuthenticator`)

* Before a handshake anything but ApiVersions and SaslHandshake ends the connection at once.
* During the exchange anything but SaslAuthenticate is a failure.
* A failure is answered, if at all, `connection.failed.authentication.delay.ms` later, and then the
  connection ends: so guessing takes time. A client that waits costs a timer and no task.
* A client gets the reason only if it says nothing about users.
* A session that has an end (KIP-368) may be renewed by another handshake, with the same mechanism
  and principal, at most once a second. After its end, the first request that is no handshake closes
  the connection.
"""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Final

from broker.request import RequestContext
from broker.security.authentication.mechanism import Exchange, Mechanism
from broker.security.authentication.outcomes import Answer, AuthenticatedUser, RefusedError
from broker.security.authentication.sasl_listener import SaslListener
from broker.security.authentication.states import ANSWERED, RAW, TRANSITIONS, Event, SaslState
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

REAUTHENTICATION_APART_S: Final = 1.0
"""The least time between the beginnings of two re-authentications of a connection."""
_SHOWN: Final = 100
"""Characters of a mechanism's name, which the client chose, that are logged."""

_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)


class Admission(Enum):
    """The decision about a request."""

    HANDLED = "its handler answers"
    REFUSED = "it is a failure, without an answer"
    CLOSED = "the connection ends at once"
    EXPIRED = "the session has expired, so the connection ends at once"


def _nobody(identity: AuthenticatedUser) -> None:
    pass


class Authenticator:
    """The authentication of one connection. Times are monotonic seconds."""

    __slots__ = (
        "_began",
        "_exchange",
        "_failure",
        "_listener",
        "_mechanism",
        "connection_id",
        "entered",
        "expires_at",
        "identity",
        "knows_sessions",
        "peer_host",
        "state",
    )

    def __init__(self, listener: SaslListener, connection_id: str, peer_host: str) -> None:
        self._listener = listener
        self.connection_id = connection_id
        self.peer_host = peer_host
        self.state = SaslState.FIRST
        self.identity: AuthenticatedUser | None = None
        """The client's identity; None before the client has proved it."""
        self.expires_at: float | None = None
        """When the session ends; None if never, or if there is none yet."""
        self.knows_sessions = False
        """Whether the client can authenticate again."""
        self.entered: Callable[[AuthenticatedUser], object] = _nobody
        """Called whenever the client has proved who it is."""
        self._mechanism: Mechanism | None = None
        self._exchange: Exchange | None = None
        self._began: float | None = None
        """When the last re-authentication began."""
        self._failure = ""
        """The reason for which any further request fails."""

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the mechanisms."""
        return self._listener.offered

    # ---- before a request is parsed

    @property
    def is_raw(self) -> bool:
        """Whether the next frame has no request's header, or none that matters."""
        return self.state in RAW

    @property
    def is_lost(self) -> bool:
        """Whether any next frame is refused."""
        return self.state is SaslState.OTHER_MECHANISM

    def admit(self, key: int, now: float) -> Admission:
        """Decide about a request of API `key`, which came at `now`."""
        state = self.state
        if state is SaslState.COMPLETE:
            expires_at = self.expires_at
            if expires_at is None or now <= expires_at:
                return Admission.HANDLED
            if key == _HANDSHAKE and self._may_begin_again(now):
                return Admission.HANDLED
            return Admission.EXPIRED
        if key in ANSWERED[state]:
            return Admission.HANDLED
        return Admission.REFUSED if state is SaslState.TOKENS else Admission.CLOSED

    def note_closed(self, key: int) -> None:
        """A request of API `key` ends the connection before the handshake."""
        self._listener.tell_of_stranger(
            self._client,
            f"Unexpected Kafka request of type {_api_name(key)} during SASL handshake.",
        )

    def forget(self) -> None:
        """The connection has ended: drop the reference to it."""
        self.entered = _nobody

    def note_bad_bytes(self, reason: str) -> None:
        """Bytes that are no request end the connection before it has authenticated."""
        self._listener.tell_of_stranger(self._client, reason)

    def note_bad_size(self) -> None:
        """A frame of a size that is not accepted ends the connection."""
        self._tell_of_failure("Failing SASL authentication due to invalid receive size")
        self._count_failure()

    def note_expired(self) -> None:
        """A request after the end of the session ends the connection."""
        self._listener.counts.expired += 1
        logger.debug("Disconnecting expired channel: %s", self.connection_id)

    # ---- requests

    async def ask_versions(self, ctx: RequestContext) -> bool:
        """Return whether ApiVersions is answered now. If so, `tell_versions` follows."""
        if self.state is not SaslState.TOKENS:
            return True
        await self._fail(ctx, _unexpected(ApiKey.API_VERSIONS))
        return False

    def tell_versions(self) -> None:
        """ApiVersions is answered, without an error."""
        if self.state is SaslState.FIRST:
            self._move(Event.VERSIONS)

    async def shake_hands(self, ctx: RequestContext, mechanism: str) -> Answer:
        """SaslHandshake: the client chooses a mechanism."""
        if self.state is SaslState.TOKENS:
            await self._fail(ctx, _unexpected(ApiKey.SASL_HANDSHAKE))
            return Answer(ErrorCode.ILLEGAL_SASL_STATE)
        if self.state is SaslState.COMPLETE:
            now = self._listener.clock.monotonic()
            if not self._may_begin_again(now):
                return Answer(ErrorCode.ILLEGAL_SASL_STATE)
            self._began = now
        chosen = self._listener.mechanisms.get(mechanism)
        if chosen is None:
            await self._fail(ctx, f"Unsupported SASL mechanism {mechanism[:_SHOWN]}")
            return Answer(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        if self._mechanism is not None and self._mechanism is not chosen:
            self._failure = (
                f"SASL mechanism '{chosen.name}' requested by client is not supported for"
                f" re-authentication of mechanism '{self._mechanism.name}'"
            )
            self._move(Event.OTHER_HANDSHAKE)
        else:
            self._mechanism, self._exchange = chosen, chosen.begin()
            self._move(Event.HANDSHAKE if ctx.api_version else Event.RAW_HANDSHAKE)
        return Answer()

    async def authenticate(self, ctx: RequestContext, message: bytes) -> Answer:
        """SaslAuthenticate, or a frame without header: the mechanism's next message."""
        exchange = self._exchange
        if exchange is None:  # only in COMPLETE does `admit` let this request pass
            return Answer(
                ErrorCode.ILLEGAL_SASL_STATE,
                "SaslAuthenticate request received after successful authentication",
            )
        if ctx.api_version > 0:
            self.knows_sessions = True
        try:
            progress = await exchange.evaluate(message)
        except RefusedError as refusal:
            logger.debug("%s: %s", self.connection_id, refusal.why)
            text = refusal.told or self._invalid_credentials()
            return await self._refuse(ctx, text, is_logged=refusal.is_logged)
        except Exception:  # after a bug the client may not try again
            self._give_up(ctx)
            raise
        identity, before = progress.identity, self.identity
        if identity is None:
            if progress.refusal:
                self._tell_of_failure(progress.refusal)
            self._move(Event.CHALLENGE)
            return Answer(message=progress.message)
        if before is not None and before.user != identity.user:
            return await self._refuse(
                ctx,
                "Cannot change principals during re-authentication from"
                f" User.{before.user}: User.{identity.user}",
            )
        return Answer(message=progress.message, lifetime_ms=self._enter(identity))

    async def refuse(self, ctx: RequestContext) -> None:
        """Fail because of a request that is refused unparsed; the failure is not answered."""
        failure = self._failure or _unexpected(ctx.api_key)
        await self._fail(ctx, failure)

    # ---- what follows

    def _may_begin_again(self, now: float) -> bool:
        if self.expires_at is None:
            return False
        return self._began is None or now - self._began >= REAUTHENTICATION_APART_S

    def _enter(self, identity: AuthenticatedUser) -> int:
        """Begin the session of `identity`; return its lifetime in milliseconds."""
        listener, mechanism = self._listener, self._mechanism
        assert mechanism is not None
        now = listener.clock.monotonic()
        lifetimes = [mechanism.max_reauth_ms] if mechanism.max_reauth_ms else []
        if identity.expires_ms is not None:
            lifetimes.append(identity.expires_ms - listener.clock.wall_ms())
        lifetime_ms = max(0, min(lifetimes, default=0))
        self.expires_at = now + lifetime_ms / 1000 if lifetimes else None
        is_first = self.identity is None
        self.identity, self._exchange = identity, None
        self._move(Event.PROOF)
        if is_first or self._began is None:
            listener.note_success(knows_sessions=self.knows_sessions)
        else:
            listener.note_success_again(now - self._began)
        self.entered(identity)
        return lifetime_ms

    def _invalid_credentials(self) -> str:
        assert self._mechanism is not None
        return (
            f"Authentication failed during {self._what} due to invalid credentials with SASL"
            f" mechanism {self._mechanism.name}"
        )

    @property
    def _what(self) -> str:
        return "authentication" if self.identity is None else "re-authentication"

    @property
    def _client(self) -> str:
        return f"/{self.peer_host} (channelId={self.connection_id})"

    def _tell_of_failure(self, reason: str) -> None:
        self._listener.tell_of_failure(self._client, self._what, reason)

    def _count_failure(self) -> None:
        self._listener.count_failure(again=self.identity is not None)

    async def _refuse(self, ctx: RequestContext, text: str, *, is_logged: bool = False) -> Answer:
        await self._fail(ctx, text, is_logged=is_logged)
        return Answer(ErrorCode.SASL_AUTHENTICATION_FAILED, text)

    async def _fail(self, ctx: RequestContext, reason: str, *, is_logged: bool = False) -> None:
        """Fail now; return when the answer may leave, after which the connection ends."""
        self._give_up(ctx)
        if not is_logged:
            self._tell_of_failure(reason)
        self._count_failure()
        ctx.released = True
        await self._listener.wait_before_refusal()

    def _give_up(self, ctx: RequestContext) -> None:
        self._exchange = None
        self._move(Event.FAILURE)
        ctx.close_connection = True

    def _move(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state][event]


def _api_name(key: int) -> str:
    try:
        return ApiKey(key).name
    except ValueError:
        return str(key)


def _unexpected(key: int) -> str:
    return f"Unexpected Kafka request of type {_api_name(key)} during SASL authentication."
