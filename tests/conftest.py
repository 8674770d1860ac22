"""Remove what tests leave behind; set which tests run when, and on which examples."""

import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import trio._core._run as trio_loop
from hypothesis import HealthCheck, settings

from tests import selection
from tests.support.stores import close_stores

# A run is the same every time; `--hypothesis-profile drawn` looks for other examples. In either, a
# machine that is busy with something else is no failure of a property.
settings.register_profile(
    "drawn", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("repeated", settings.get_profile("drawn"), derandomize=True)
settings.load_profile("repeated")

# Programs are sent Ctrl-C, which a run in the background of a shell would have them ignore.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    selection.mark(items)
    selection.in_order(items)


def pytest_collection_finish() -> None:
    """Leave what is there before the tests out of each collection: half a gigabyte of objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the interpreter free all objects at its end: libraries in C report what is left."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile` the files of Spark go to one worker."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return selection.group_of(nodeid)

    return ByGroup(config, log)


@pytest.fixture(autouse=True)
def _tasks_run_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio shuffles the tasks that may run; with drawn examples it is left to."""
    if settings.get_current_profile_name() == "repeated":
        monkeypatch.setattr(trio_loop, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        trio_loop._r.seed(0)


@pytest.fixture(autouse=True)
def _stores_are_closed() -> Iterator[None]:
    yield
    close_stores()
