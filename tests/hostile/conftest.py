"""Everything here starts a broker process, and does to it what nobody should."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.hostile)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With the settings that everybody has."""
    with BrokerProcess(tmp_path) as process:
        yield process
