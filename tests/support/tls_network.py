"""Networks whose streams speak TLS, with the certificates of the tests.

TlsNet(net)               the network of a test, with TLS on both ends of each connection
TlsTransport(transport)   a transport whose accepted streams speak TLS by themselves
tls_listeners(...)        the TLS of a broker whose one listener is called PLAINTEXT
client_end(stream)        the end of a client
shake(stream)             its part of the handshake
"""

import functools
import ssl
from typing import Any

from broker.network.handshakes import HandshakeBounds
from broker.network.tls_listeners import TlsListeners
from broker.world.tls_stream import TlsFailure, TlsStream, scratch_memory
from broker.world.transport import BoundListener, Listening, Stream, Transport
from config.broker_config import BrokerConfig
from config.listener import Listener
from storage.clock import Clock
from storage.waits import at_once
from tests.support.certificates import ca_pem, listener_settings
from tests.support.networks import Net
from tls.authority import Identity
from tls.contexts import client_context
from tls.settings import SERVED_PROTOCOLS, ClientSettings, KeyStoreSettings, TrustStoreSettings


def tls_listeners(clock: Clock, bounds: HandshakeBounds | None = None, **more: str) -> TlsListeners:
    """The TLS of a broker; `more` are settings of it, with `_` for a dot."""
    config = BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:SSL",
            **listener_settings(**more),
        }
    )
    listeners = TlsListeners(clock, bounds or HandshakeBounds())
    at_once(listeners.load(config))
    return listeners


class TlsListening:
    """See `broker.world.transport.Listening`."""

    def __init__(self, below: Listening, listeners: TlsListeners) -> None:
        self._below = below
        self._listeners = listeners
        self.wait_acceptable = below.wait_acceptable
        self.close = below.close

    @property
    def bound(self) -> BoundListener:
        """See `Listening`."""
        return self._below.bound

    @property
    def is_open(self) -> bool:
        """See `Listening`."""
        return self._below.is_open

    def accept(self) -> TlsStream:
        """See `Listening`. The handshake is the stream's: nobody waits for it here."""
        stream = self._listeners.secure("PLAINTEXT", self._below.accept())
        assert stream is not None
        return stream


class TlsTransport:
    """See `broker.world.transport.Transport`."""

    def __init__(self, below: Transport, listeners: TlsListeners) -> None:
        self._below = below
        self._listeners = listeners
        self.readiness = below.readiness
        self.dial = below.dial

    def listen(self, listener: Listener, **sizes: int) -> TlsListening:
        """See `Transport`."""
        return TlsListening(self._below.listen(listener, **sizes), self._listeners)


def client_end(
    below: Stream, identity: Identity | None = None, *, version: str | None = None
) -> TlsStream:
    """The end of a client that checks the certificate of the tests, and may show one."""
    context = _client_context(identity, (version,) if version else SERVED_PROTOCOLS)
    return TlsStream(below, context, scratch_memory(), server_name="localhost")


class TlsNet:
    """A network of a test, with TLS; see `tests.support.networks.Net`."""

    def __init__(
        self,
        below: Net,
        identity: Identity | None = None,
        *,
        bounds: HandshakeBounds | None = None,
        **more: str,
    ) -> None:
        """`identity` is what clients show; `more` are settings, with `_` for a dot."""
        self.below = below
        self.in_memory = below.in_memory
        self.transport: Transport = below.transport
        self.clock = below.clock
        self.workers = below.workers
        self.run = below.run
        self.settle = below.settle
        self._settings = more
        self._bounds = bounds
        self._identity = identity
        self.shake = shake

    @functools.cached_property
    def secured(self) -> TlsListeners:
        """The server's end; made within `run`, where there is time."""
        return tls_listeners(self.clock, self._bounds, **self._settings)

    def connect(self, port: int) -> TlsStream:
        """See `Net`."""
        return client_end(self.below.connect(port), self._identity)

    def send_eof(self, stream: Any) -> None:
        """See `Net`: in order, with `close_notify`."""
        stream.send_end()
        self.below.send_eof(stream.below)

    def reset(self, stream: Any) -> None:
        """See `Net`."""
        self.below.reset(stream.below)


async def shake(stream: TlsStream) -> None:
    """Shake hands; a server's last bytes leave when others do. Raises OSError if that fails."""
    while True:
        outcome = stream.advance()
        if isinstance(outcome, TlsFailure):
            raise ssl.SSLError(outcome.reason, outcome.certificate)
        if stream.is_shaken and (stream.flush() or stream.tls.server_side):
            return
        if not stream.flush():
            await stream.below.wait_writable()
        elif not stream.is_shaken:
            try:
                if not stream.feed():
                    raise ConnectionResetError("no handshake")
            except BlockingIOError:
                await stream.below.wait_readable()


@functools.cache
def _client_context(identity: Identity | None, versions: tuple[str, ...]) -> ssl.SSLContext:
    keys = KeyStoreSettings()
    if identity is not None:
        key, chain = identity.key_pem().decode(), identity.certificate_pem().decode()
        keys = KeyStoreSettings(type="PEM", key=key, chain=chain)
    trust = TrustStoreSettings(type="PEM", certificates=ca_pem())
    settings = ClientSettings(keys=keys, trust=trust, protocols=versions)
    return client_context(settings, lambda path: b"")
