"""The world of the controller's tests."""

from collections.abc import Iterator

import pytest

from tests.support.controller_world import RestingWorld


@pytest.fixture
def world() -> Iterator[RestingWorld]:
    """Three brokers, and the first one as the controller; after a test all agree again."""
    made = RestingWorld()
    made.start_broker(1, 2, 3)
    made.start_controller(1)
    yield made
    made.settle()
    made.check()
