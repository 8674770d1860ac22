"""Our encoders on the nodes that Apache Kafka 3.9 made, as they were kept."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kafka_nodes import CHECKS, Nodes

GOLDEN = Path(__file__).parents[3] / "golden" / "zookeeper_nodes.json"


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    found: dict[str, str | None] = json.loads(GOLDEN.read_text())
    return {path: None if value is None else value.encode() for path, value in found.items()}


@pytest.mark.parametrize("check", CHECKS)
def test_our_encoders_write_kafkas_nodes(check: Callable[[Nodes], None], nodes: Nodes) -> None:
    check(nodes)
