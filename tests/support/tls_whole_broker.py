"""A whole broker in memory with a TLS listener beside the plain one.

@whole_broker(**TLS)
async def test_…(broker: WholeBroker) -> None:
    client = await over_tls(broker)
"""

from broker.world.tls_stream import TlsStream
from tests.support.certificates import listener_settings
from tests.support.fake_handlers import AsyncClient
from tests.support.memory_client import HOST, PORT
from tests.support.memory_transport import MemoryTransport
from tests.support.tls_network import client_end, shake
from tests.support.whole_broker import WholeBroker

TLS_PORT = 9093
LISTENERS = f"PLAINTEXT://{HOST}:{PORT},SSL://{HOST}:{TLS_PORT}"
TLS = {
    "listeners": LISTENERS,
    **{key.replace(".", "__"): value for key, value in listener_settings().items()},
}


async def shaken(broker: WholeBroker) -> TlsStream:
    """The end of a client that has shaken hands."""
    stream = client_end(MemoryTransport(broker.network).connect(HOST, TLS_PORT))
    await shake(stream)
    return stream


async def over_tls(broker: WholeBroker) -> AsyncClient:
    """A client that speaks TLS."""
    return AsyncClient(await shaken(broker))
