"""Programs that people put around a Kafka broker, unmodified, on a real broker of this project."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.either_broker import EitherBroker, either_broker

SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Defaults but for patience, and for internal topics that one process of Java needs seconds for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.ecosystem)
            # Warnings of client libraries are no matter of these tests.
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EitherBroker]:
    with either_broker(tmp_path / "broker", SETTINGS) as made:
        yield made
