"""What every test leaves behind is put away."""

from collections.abc import Iterator

import pytest

from tests.support.stores import close_stores


@pytest.fixture(autouse=True)
def _stores_are_closed() -> Iterator[None]:
    yield
    close_stores()
