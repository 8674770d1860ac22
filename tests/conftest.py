"""What a test leaves behind is put away; which tests run when, and on what examples, is set."""

import signal
from collections.abc import Iterator

import pytest
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


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups that are set here
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    selection.mark(items)
    selection.in_order(items)


@pytest.fixture(autouse=True)
def _stores_are_closed() -> Iterator[None]:
    yield
    close_stores()
