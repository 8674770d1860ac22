"""What the broker's unit tests share: networks, stores, and how a test that waits is run."""

import functools
import inspect
from typing import Any

import pytest
import trio

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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine as its fixtures ask for, else `at_once`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    values = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    test = functools.partial(pyfuncitem.obj, **values)
    if "net" in values:
        values["net"].run(test)
    elif "loop" in pyfuncitem.fixturenames:
        trio.run(test)
    elif "driven" in values:
        trio.run(driver().run, test())
    else:
        at_once(test())
    return True
