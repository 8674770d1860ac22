"""Fixtures for the broker's unit tests: networks, stores, and a loop for tests that wait."""

from functools import partial
from inspect import iscoroutinefunction
from typing import Any

import pytest
import trio

from broker.cluster.embedded_store import EmbeddedStore
from storage.waits import at_once
from tests.support.driving import RunWork, driver
from tests.support.networks import MemoryNet, Net, SocketNet
from tests.support.stores import open_store


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is `async def`.

    `loop` and `driven` say how. Else the first argument that has a `run` runs it, such as a
    network, a clock or a scene. A test without one is work (`storage.waits`), which is done at
    once, without an event loop.
    """
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    test = partial(pyfuncitem.obj, **arguments)
    if "loop" in pyfuncitem.fixturenames:
        trio.run(test)
    elif "driven" in arguments:
        trio.run(driver().run, test())
    else:
        run = next((one.run for one in arguments.values() if hasattr(one, "run")), None)
        if run is None:
            at_once(test())
        else:
            run(test)
    return True


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
def loop() -> None:
    """Has a test that is a coroutine run on trio's loop."""


@pytest.fixture
def driven() -> None:
    """Has a test that is a coroutine run as the broker's work is; what it runs `together`, too."""


@pytest.fixture
def run_work(loop: None) -> RunWork[Any]:
    """Runs work beside the tasks of a test."""
    return driver().run
