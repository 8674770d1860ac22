"""Fixtures for asynchronous tests of the network: networks, a connection loop."""

import pytest

from tests.support.loop_scene import Scene
from tests.support.networks import Net
from tests.support.tls_network import TlsNet


@pytest.fixture
def scene() -> Scene:
    """A loop over connections that a test speaks for."""
    return Scene()


@pytest.fixture
def tls(net: Net) -> TlsNet:
    """TLS over each network."""
    return TlsNet(net)


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def stream_net(request: pytest.FixtureRequest, net: Net) -> Net:
    """Each network without TLS and with it."""
    return TlsNet(net) if request.param else net
