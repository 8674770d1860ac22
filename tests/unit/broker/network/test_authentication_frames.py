"""Frames of a client that has yet to prove who it is, over an authenticator that a test plays."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from broker.api_facts import by_key
from broker.network.activity import Activity, Ending
from broker.network.authentication_frames import AuthenticationFrames
from broker.network.request_metrics import RequestMetrics
from broker.network.routes import RouteTable
from broker.request import ConnectionInfo, RequestContext
from broker.security.authentication.authenticator import Admission
from protocol.api_keys import ApiKey
from protocol.errors import FrameSizeError, ProtocolError
from protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from storage.waits import at_once
from tests.support.fake_handlers import fake

NOW = 5.0
START = 3
"""Bytes that are before the frame in its buffer."""
INFO = ConnectionInfo(
    connection_id="id",
    listener_name="SASL",
    local_host="10.0.0.1",
    local_port=9093,
    peer_host="10.0.0.2",
    peer_port=40000,
)


class Played:
    """An `Authenticator` whose decision a test sets; it notes the calls."""

    is_raw = is_lost = False

    def __init__(self) -> None:
        self.admission = Admission.HANDLED
        self.calls: list[Any] = []

    def admit(self, key: int, now: float) -> Admission:
        self.calls.append(("admit", key, now))
        return self.admission

    async def refuse(self, ctx: RequestContext) -> None:
        ctx.close_connection = True
        self.calls.append(("refuse", ctx.api_key))

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: self.calls.append((name, *given))


class Scene:
    """The frames of one connection; `behave` answers messages without header."""

    def __init__(self) -> None:
        self.authenticator = Played()
        self.activity = Activity(NOW)
        self.contexts: list[RequestContext] = []
        self.handled: list[Any] = []
        self.closes = False
        metrics: dict[int, RequestMetrics] = {}
        served = by_key([fake(ApiKey.SASL_AUTHENTICATE, self._answer)])
        raw = RouteTable(served, metrics).raw()
        self.metrics = metrics[ApiKey.SASL_AUTHENTICATE]
        played: Any = self.authenticator
        handling: Any = self
        self.frames = AuthenticationFrames(played, INFO, raw, handling, self.activity)

    def handle(self, *given: Any) -> str:
        """Stand for the `RequestHandling`."""
        self.handled.append(given)
        return "handled"

    def _answer(self, ctx: RequestContext, request: Any) -> SaslAuthenticateResponse:
        self.contexts.append(ctx)
        ctx.close_connection = self.closes
        return SaslAuthenticateResponse(auth_bytes=b"re: " + request.auth_bytes)

    def take(self, frame: bytes) -> Any:
        buffer = bytearray(b"\xff" * START + frame + b"\xff\xff")
        return self.frames.handle(buffer, memoryview(buffer), START, START + len(frame), NOW)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def request(key: int, size: int = 8) -> bytes:
    return (struct.pack(">hhi", key, 1, 2) + bytes(size))[:size]


@pytest.mark.parametrize("size", [8, 9])
def test_a_request_that_is_admitted_is_handled_as_any(scene: Scene, size: int) -> None:
    assert scene.take(request(17, size)) == "handled"
    ((buffer, view, start, end, now),) = scene.handled
    assert (view.obj is buffer, start, end - start, now) == (True, START, size, NOW)
    assert scene.authenticator.calls == [("admit", 17, NOW)]
    assert scene.activity.ending is None


@pytest.mark.parametrize("size", [0, 1, 7])
def test_bytes_that_are_shorter_than_a_header_are_no_request(scene: Scene, size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a request of {size} bytes is too short"):
        scene.take(request(17, size))
    assert not scene.authenticator.calls


@pytest.mark.parametrize(
    ("admission", "ending", "noted"),
    [
        (Admission.EXPIRED, Ending.SESSION, ("note_expired",)),
        (Admission.CLOSED, Ending.STRANGER, ("note_closed", 3)),
    ],
)
def test_s_sec_1_a_request_that_is_not_admitted_ends_the_connection(
    scene: Scene, admission: Admission, ending: Ending, noted: tuple[Any, ...]
) -> None:
    scene.authenticator.admission = admission
    assert scene.take(request(3)) is None
    assert scene.activity.ending is ending
    assert scene.authenticator.calls == [("admit", 3, NOW), noted]
    assert not scene.handled


def test_s_sec_1_a_request_that_is_refused_waits_for_its_failure(scene: Scene) -> None:
    scene.authenticator.admission = Admission.REFUSED
    pending = scene.take(request(3))
    assert scene.metrics.requests == 1
    assert at_once(pending.rest) is None
    assert pending.context.close_connection
    assert scene.authenticator.calls == [("admit", 3, NOW), ("refuse", 3)]
    assert not scene.handled


@pytest.mark.parametrize("message", [b"", b"x", b"a\0alice\0secret"])
def test_a_frame_without_header_is_a_message_whatever_its_size(
    scene: Scene, message: bytes
) -> None:
    """Its version is 0, so its client does not know of sessions that end."""
    scene.authenticator.is_raw = True
    pending = scene.take(message)
    assert at_once(pending.rest).auth_bytes == b"re: " + message
    assert pending.request.auth_bytes == message
    (context,) = scene.contexts
    assert context is pending.context
    assert (context.api_version, context.connection, context.received) == (0, INFO, NOW)
    assert scene.metrics.requests == 1
    assert not scene.authenticator.calls


def test_a_message_without_header_that_fails_is_not_answered(scene: Scene) -> None:
    scene.authenticator.is_raw = scene.closes = True
    assert at_once(scene.take(b"wrong").rest) is None
    assert len(scene.contexts) == 1


def test_s_sec_2_after_another_mechanism_any_message_is_refused_unread(scene: Scene) -> None:
    scene.authenticator.is_raw = scene.authenticator.is_lost = True
    pending = scene.take(b"any")
    assert at_once(pending.rest) is None
    assert pending.context.close_connection
    assert [name for name, *_ in scene.authenticator.calls] == ["refuse"]
    assert not scene.contexts


def test_bad_bytes_and_the_end_are_noted(scene: Scene) -> None:
    scene.frames.note_bad_bytes(FrameSizeError("too large"))
    scene.frames.note_bad_bytes(ProtocolError("garbage"))
    scene.frames.forget()
    assert scene.authenticator.calls == [
        ("note_bad_size",),
        ("note_bad_bytes", "garbage"),
        ("forget",),
    ]
