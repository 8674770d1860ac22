"""Networks whose streams speak TLS, with the certificate of the tests (`tls_certificate.pem`).

TlsNet(net)               the network of a test, with TLS on both ends of each connection
TlsTransport(transport)   a broker's transport, all of whose clients must speak TLS
client_end(stream)        the end of a client
"""

import functools
import ssl
from pathlib import Path
from typing import Any, Final

from broker.world.transport import BoundListener, Listening, Stream, Transport
from config.listener import Listener
from tests.support.networks import Net
from tests.support.tls_stream import TlsStream

_CERTIFICATE: Final = Path(__file__).with_name("tls_certificate.pem")
_NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME: a test does not depend on the time of day."""


class TlsListening:
    """See `broker.world.transport.Listening`."""

    def __init__(self, below: Listening) -> None:
        self._below = below
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
        return TlsStream(self._below.accept(), _server_context(), server_side=True)


class TlsTransport:
    """See `broker.world.transport.Transport`."""

    def __init__(self, below: Transport) -> None:
        self._below = below
        self.readiness = below.readiness

    def listen(self, listener: Listener, **sizes: int) -> TlsListening:
        """See `Transport`."""
        return TlsListening(self._below.listen(listener, **sizes))


def client_end(below: Stream) -> TlsStream:
    """The end of a client that checks the certificate of the tests."""
    return TlsStream(below, _client_context(), server_side=False)


class TlsNet:
    """A network of a test, with TLS; see `tests.support.networks.Net`."""

    def __init__(self, below: Net) -> None:
        self.below = below
        self.in_memory = below.in_memory
        self.transport: Transport = TlsTransport(below.transport)
        self.clock = below.clock
        self.workers = below.workers
        self.run = below.run
        self.settle = below.settle

    def connect(self, port: int) -> TlsStream:
        """See `Net`."""
        return client_end(self.below.connect(port))

    def send_eof(self, stream: Any) -> None:
        """See `Net`: in order, with `close_notify`."""
        stream.send_end()
        self.below.send_eof(stream.below)

    def reset(self, stream: Any) -> None:
        """See `Net`."""
        self.below.reset(stream.below)


@functools.cache
def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_CERTIFICATE)
    _tell_cuts_from_ends(context)
    return context


@functools.cache
def _client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(_CERTIFICATE)
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    _tell_cuts_from_ends(context)
    return context


def _tell_cuts_from_ends(context: ssl.SSLContext) -> None:
    """Python's contexts take an end without `close_notify` for one in order."""
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
