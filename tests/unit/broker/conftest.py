"""Fixtures of the broker's unit tests."""

import pytest

from tests.support.networks import MemoryNet, Net, SocketNet


@pytest.fixture(params=[SocketNet, MemoryNet], ids=["sockets", "memory"])
def net(request: pytest.FixtureRequest) -> Net:
    """A network; a test that takes it runs on both."""
    made: Net = request.param()
    return made
