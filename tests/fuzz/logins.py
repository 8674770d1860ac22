"""Attempts to log in, from a seed: right ones, and wrong ones at every step.

An attempt is the work of a client on one connection: a plan of frames that would log it in, to
which some harm is done. The plans are all mechanisms, with and without headers, and users, wrong
passwords and strangers. The harm is a message or a frame with bytes changed, said twice, left out,
from an earlier attempt, another request in its place, or the client's leaving. Then it asks for
metadata. Whatever it did:

* it is served only if it sent a whole proof of its name: the password, the signature that its
  nonce and the server's ask for, the signed token;
* an attempt without harm is served, if it is a right one;
* a stranger is closed within the time that it has;
* nothing is logged as an error, no turn is long, the broker runs, and a good client logs in;
* in the end nothing is left of anybody: no stranger, no timer, nobody in the line for threads.
"""

import base64
import gc
import json
import re
import signal
import struct
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Final

import trio

from broker.world.streams import send_all
from broker.world.transport import Stream
from protocol.api_keys import ApiKey
from protocol.errors import ProtocolError
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl import MalformedMessage
from protocol.sasl.oauthbearer import build_bearer
from protocol.sasl.plain import build_plain
from protocol.sasl.scram import ScramMechanism, random_text, salted_password
from protocol.sasl.scram_messages import build_client_final, build_client_first, parse_server_first
from tests.frames.mutations import damaged
from tests.fuzz.findings import Finding
from tests.fuzz.run import Chunk, Limits, Result, Watched, alarm, watched_log
from tests.fuzz.watch import LogWatch, greatest_rss, rss
from tests.support.memory_client import receive_frame
from tests.support.memory_transport import MemoryTransport
from tests.support.sasl_client import PORT, SETTINGS, SaslClient, upsertion
from tests.support.tokens import jwk, signed
from tests.support.whole_broker import HOST, WholeBroker
from tests.support.wire_client import read_response, request_frame

USER, PASSWORD, WRONG = "alice", "alice-secret", "bob-secret"
PASSWORD_SENT: Final = build_plain(USER, PASSWORD)[1:]
KEYS: Final = "https://issuer/keys"
FUZZED: Final = {
    **SETTINGS,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": KEYS,
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer",
    "max.unauthenticated.connections": "50",
    "max.unauthenticated.connections.per.ip": "20",
}
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PATIENCE_S: Final = 20.0
"""Virtual seconds: a stranger has ten, and a tenth more to be refused."""
PER_GOOD_LOGIN: Final = 100
_REMEMBERED: Final = 50
_HOSTS: Final = tuple(f"10.0.0.{n}" for n in range(1, 9))
_PROOF: Final = re.compile(rb"p=([A-Za-z0-9+/]{20,}=*)")

Messages = Generator[bytes, bytes | None, None]
"""The messages of a client. It gets the answers by `send`, and None in place of a bad answer."""


class FileOfKeys:
    """The web: it has the issuer's keys only."""

    def read(self, url: str) -> bytes:
        assert url == KEYS
        return json.dumps({"keys": [jwk("RSA 1")]}).encode()


@dataclass(slots=True)
class Evidence:
    """The bytes that a client sent, and those among them that prove its name."""

    first: bytes = b""
    """The first message of a client of SCRAM; empty if it does not know the password."""
    proof: bytes = b""
    """The bytes of its proof, which it sends in Base64."""
    sent: bytearray = field(default_factory=bytearray)

    @property
    def is_complete(self) -> bool:
        """Whether it sent the password, the signed token, or a proof of its own."""
        if PASSWORD_SENT in self.sent or _token("right").rpartition(".")[0].encode() in self.sent:
            return True
        return (
            bool(self.first)
            and self.first in self.sent
            and any(_decoded(found) == self.proof for found in _PROOF.findall(self.sent))
        )


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


# ---- messages


def _plain(user: str, password: str) -> Messages:
    yield build_plain(user, password)


def _scram(
    evidence: Evidence, rng: Random, mechanism: ScramMechanism, user: str, password: str
) -> Messages:
    first = build_client_first(user, random_text(rng.getrandbits))
    answer = yield first.data
    try:
        server = parse_server_first(answer or b"", first)
    except MalformedMessage:
        return
    salted = _salted(mechanism, password, server.salt, server.iterations)
    message, _ = build_client_final(mechanism, first, server, salted)
    if (user, password) == (USER, PASSWORD):
        evidence.first = first.bare.encode()
        evidence.proof = base64.b64decode(message.rpartition(b"p=")[2])
    yield message


@cache
def _salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return salted_password(mechanism, password, salt, iterations)


@cache
def _token(which: str) -> str:
    now = {"iat": 0, "exp": 10**10}
    if which == "right":
        return signed("RSA 1", **now)
    if which == "other key":
        return signed("RSA 2", kid="RSA 1", **now)
    return signed("RSA 1", **{**now, "exp": 1})


def _bearer(which: str) -> Messages:
    answer = yield build_bearer(_token(which))
    if answer:
        yield b"\x01"


# ---- harm

_NASTY: Final = (b"\0", b"\xff", b",", b"=", b"\x01", b"n=bob", b"m=x,", b"\xc3\xa9", b"r=", b"a")


def _changed(rng: Random, data: bytes) -> bytes:
    data = damaged(data, rng, _NASTY, (1, 1, 1, 2, 5))
    return data + bytes(rng.choice((1, 100, 30_000))) if rng.random() < 0.2 else data


HARMS: Final = (
    *("none",) * 4,
    *("message",) * 6,
    *("frame",) * 6,
    *("other request",) * 3,
    "twice",
    "left out",
    "replay",
    "leave",
    "garbage",
    "cut",
)


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """One connection's plan, as drawn from the seed."""

    mechanism: str
    who: str
    version: int
    """The version of SaslHandshake; after version 0 messages have no headers."""
    harm: str
    at: int
    """The number of the frame to which the harm is done, or before which."""
    host: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.mechanism} v{self.version} of {self.who}, {self.harm} at {self.at}"

    @property
    def is_right(self) -> bool:
        """Whether it has to be served."""
        return self.who == "alice" and self.harm == "none"


def _drawn(rng: Random) -> _Attempt:
    return _Attempt(
        mechanism=rng.choice(MECHANISMS),
        who=rng.choice(("alice", "alice", "alice", "wrong", "nobody")),
        version=rng.choice((0, 1, 1)),
        harm=rng.choice(HARMS),
        at=rng.randrange(4),
        host=rng.choice(_HOSTS),
    )


def _messages(attempt: _Attempt, evidence: Evidence, rng: Random) -> Messages:
    user = "nobody" if attempt.who == "nobody" else USER
    password = PASSWORD if attempt.who == "alice" else WRONG
    if attempt.mechanism == "PLAIN":
        return _plain(user, password)
    if attempt.mechanism == "OAUTHBEARER":
        which = {"alice": "right", "wrong": "other key"}.get(attempt.who, "expired")
        return _bearer(which)
    return _scram(evidence, rng, ScramMechanism(attempt.mechanism), user, password)


# ---- connections


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _request(key: ApiKey, version: int, request: Any) -> bytes:
    """Return header and body of a request."""
    return request_frame(key, version, request)[4:]


class Harassed(Exception):
    """The connection has ended."""


class _Connection:
    """Sends the frames of an attempt, and does the harm."""

    def __init__(
        self, stream: Stream, attempt: _Attempt, rng: Random, recorded: list[bytes]
    ) -> None:
        self.evidence = Evidence()
        self._stream = stream
        self._attempt = attempt
        self._rng = rng
        self._recorded = recorded
        self._sent = 0

    async def log_in(self) -> None:
        """Log in. Raises Harassed and OSError if the connection ends."""
        attempt, rng = self._attempt, self._rng
        if rng.random() < 0.7:
            version = rng.choice((0, 3, 4))
            hello = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            await self._exchange(_request(ApiKey.API_VERSIONS, version, hello))
        shake = SaslHandshakeRequest(mechanism=attempt.mechanism)
        await self._exchange(_request(ApiKey.SASL_HANDSHAKE, attempt.version, shake))
        messages = _messages(attempt, self.evidence, rng)
        answer: bytes | None = None
        try:
            message = next(messages)
            while True:
                answer = await self._say(message)
                message = messages.send(answer)
        except StopIteration:
            return

    async def _say(self, message: bytes) -> bytes | None:
        """Send a message of the mechanism; return its answer."""
        attempt, rng = self._attempt, self._rng
        if self._is_due and attempt.harm == "message":
            message = _changed(rng, message)
        if attempt.version == 0:
            return await self._exchange(message)
        version = rng.randrange(3)
        request = SaslAuthenticateRequest(auth_bytes=message)
        reply = await self._exchange(_request(ApiKey.SASL_AUTHENTICATE, version, request))
        try:
            _, response = read_response(ApiKey.SASL_AUTHENTICATE, version, reply)
        except (ProtocolError, struct.error):
            return None
        return bytes(response.auth_bytes)

    @property
    def _is_due(self) -> bool:
        return self._sent == self._attempt.at

    async def _exchange(self, frame: bytes) -> bytes:
        """Send a frame, harmed if that is due; return the answer."""
        rng, harm = self._rng, self._attempt.harm
        due, self._sent = self._is_due, self._sent + 1
        if due and harm == "leave":
            raise Harassed
        if due and harm == "left out":
            return b""
        if due and harm == "other request":
            key = rng.choice((0, 1, 3, 17, 18, 18, 36, 50, 99, -1))
            frame = struct.pack(">hhih", key, rng.choice((0, 1, 3, 9)), 7, -1) + rng.randbytes(9)
        data = _framed(frame)
        if due and harm == "frame":
            data = _changed(rng, data)
        elif due and harm == "garbage":
            data = rng.randbytes(rng.choice((1, 4, 50, 3000)))
        elif due and harm == "replay" and self._recorded:
            data = rng.choice(self._recorded)
        elif due and harm == "twice":
            data *= 2
        elif due and harm == "cut":
            data = data[: rng.randrange(len(data))]
        if len(self._recorded) < _REMEMBERED:
            self._recorded.append(data)
        else:
            self._recorded[rng.randrange(_REMEMBERED)] = data
        self.evidence.sent += data
        await send_all(self._stream, data)
        return await receive_frame(self._stream)

    async def is_served(self) -> bool:
        """Whether its request for metadata is answered. Raises OSError if the connection ends."""
        frame = _request(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        await send_all(self._stream, _framed(frame))
        while True:
            reply = await receive_frame(self._stream)
            if f"{HOST}".encode() in reply:
                return True


def run_attempts(chunk: Chunk, limits: Limits) -> Result:
    """Make as many attempts as the chunk has frames, at one broker."""
    result = Result()
    with watched_log() as log, alarm():
        _Run(chunk, limits, result, log).run()
    gc.collect()
    result.rss_bytes = rss()
    return result


class _Run(Watched):
    def __init__(self, chunk: Chunk, limits: Limits, result: Result, log: LogWatch) -> None:
        super().__init__(chunk, limits, result, log)
        self._rng = Random(f"logins {chunk.seed}/{chunk.number}")
        self._recorded: list[bytes] = []
        self._done = 0
        self._what = "start"

    def run(self) -> None:
        try:
            trio.run(self._main, clock=self._timeline, instruments=[self._turns])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            broker = WholeBroker(self._timeline, nursery, FUZZED, self._hands, web=FileOfKeys())
            await broker.start()
            self._turns.client = trio.lowlevel.current_task()
            admin = broker.client("admin")
            for mechanism in ScramMechanism:
                request = upsertion(USER, PASSWORD, mechanism)
                await admin.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
            admin.close()
            transport = MemoryTransport(broker.network)
            self._memory = greatest_rss()
            while self._done < self._chunk.frames:
                await self._one(broker, transport)
                self._done += 1
                if self._done % PER_GOOD_LOGIN == 0:
                    await self._good(broker)
            await self._nothing_is_left(broker)
            nursery.cancel_scope.cancel()

    async def _one(self, broker: WholeBroker, transport: MemoryTransport) -> None:
        attempt = _drawn(self._rng)
        self._what = attempt.text
        self._begin()
        stream = transport.connect(HOST, PORT, from_host=attempt.host)
        connection = _Connection(stream, attempt, self._rng, self._recorded)
        served = ended = False
        with broker.clock.timeout(PATIENCE_S):
            try:
                await connection.log_in()
                served = await connection.is_served()
            except (Harassed, OSError):
                pass
            ended = True
        stream.close()
        self._judge(attempt, connection.evidence, served=served, ended=ended)
        if broker.has_ended:
            raise AssertionError(f"{self._where()}: the broker ended: {broker.server.failure}")

    def _judge(self, attempt: _Attempt, evidence: Evidence, *, served: bool, ended: bool) -> None:
        result = self._result
        result.frames += 1
        result.answers += served
        result.closed += ended and not served
        result.silent += not ended
        if served and not evidence.is_complete:
            self._add("served without proof")
        if attempt.is_right and not served:
            self._add("a right login is not served")
        if not ended and not evidence.is_complete:  # a client that is let in may be slow
            self._add("neither served nor closed")
        self._look(f"{self._where()} {attempt.text}")

    async def _good(self, broker: WholeBroker) -> None:
        client = SaslClient(broker, host="10.1.0.1")
        answer = await client.log_in()
        if answer.error_code or not await client.is_served():
            self._add("a good client is not served", repr(answer))
        client.close()
        self._result.acknowledged += 1

    async def _nothing_is_left(self, broker: WholeBroker) -> None:
        await broker.clock.sleep(PATIENCE_S)
        components = broker.server.components
        server, authentication = components.socket_server, components.authentication
        assert authentication is not None
        left = {
            "strangers": server.statistics().strangers,
            "connections": len(server._connections),
            "in the line": authentication._checks.waiting
            + authentication._parts.signatures.waiting,
        }
        if any(left.values()):
            self._add("left behind", repr(left))

    def _where(self) -> str:
        return f"--logins --seed {self._chunk.seed} --chunk {self._chunk.number} {self._done}"

    def _add(self, what: str, details: str = "", signature: str = "") -> None:
        finding = Finding(what, signature or self._what, self._where(), self._what, details)
        self._result.findings.add(finding)
