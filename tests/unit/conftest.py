"""How unit tests that are coroutines run: on trio's loop, in virtual time, or as work."""

from functools import partial
from inspect import iscoroutinefunction

import pytest
import trio

from storage.waits import at_once
from tests.support.driving import driver
from tests.support.virtual_time import Timeline, VirtualClock


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


@pytest.fixture
def loop() -> None:
    """Has a test that is a coroutine run on trio's loop."""


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time alone."""
    return VirtualClock(Timeline())
