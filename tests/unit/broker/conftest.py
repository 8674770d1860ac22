"""Fixtures for the broker's unit tests: networks, stores, and a driver of work."""

from typing import Any

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from storage.waits import at_once
from tests.support.driving import RunWork, driver
from tests.support.networks import MemoryNet, Net, SocketNet
from tests.support.stores import open_store


@pytest.fixture(params=["sockets", "memory"])
def net(request: pytest.FixtureRequest) -> Net:
    """A network; a test that takes it runs on both."""
    return MemoryNet() if request.param == "memory" else SocketNet()


@pytest.fixture
def pipes() -> MemoryNet:
    """The network in virtual time, for tests that count seconds."""
    return MemoryNet()


@pytest.fixture
def sockets() -> SocketNet:
    """The network in real time, for tests of threads."""
    return SocketNet()


@pytest.fixture
def store() -> EmbeddedStore:
    """A metadata store in memory."""
    return at_once(open_store())


@pytest.fixture
def driven() -> None:
    """Has a test that is a coroutine run as the broker's work is; what it runs `together`, too."""


@pytest.fixture
def run_work(loop: None) -> RunWork[Any]:
    """Runs work beside the tasks of a test."""
    return driver().run
