"""Workers of a real machine, for the tests of what they do."""

from collections.abc import Iterator

import pytest
import trio

from broker.world.machine import MachineWorkers
from tests.support.driving import close


@pytest.fixture
def machine() -> Iterator[MachineWorkers]:
    workers = MachineWorkers()
    yield workers
    trio.run(close, workers)
