"""One broker for all client tests of a run, and names that do not collide in it.

`PYKAFKALOG_TEST_BROKER=apache` runs the same scenarios on Apache Kafka
(`tests.support.either_broker`).
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.session import end_jvm
from tests.support.built_wheel import build_wheel
from tests.support.either_broker import either_broker
from tests.support.installation import under_test
from tests.support.sasl_broker import SaslBrokers
from tests.support.spark_source import source_session

QUICK_GROUPS = {"group.initial.rebalance.delay.ms": "100"}
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder talks to a real broker process."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.integration)
            # Warnings of client libraries are no matter of these tests.
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the shared broker: this project's, or Apache Kafka's as the oracle."""
    with either_broker(tmp_path_factory.mktemp("broker"), QUICK_GROUPS) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def sasl_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBrokers]:
    """Brokers whose listeners authenticate, by security protocol."""
    brokers = SaslBrokers(tmp_path_factory.mktemp("sasl"))
    yield brokers
    brokers.close()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this run: the one that is under test, or one built from the checkout."""
    made = sorted((under_test().directory / "wheels").glob("pykafkalog-*.whl"))
    return made[0] if made else build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def jvm() -> Iterator[None]:
    """The JVM of Spark in this process, which ends with the run."""
    yield
    end_jvm()


@pytest.fixture(scope="module")
def spark(jvm: None) -> SparkSession:
    """The one session of all tests of Spark's kafka source and of ours."""
    return source_session()


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses."""
    return f"topic-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def group() -> str:
    """A group name that no other test uses."""
    return f"group-{os.getpid()}-{next(_numbers)}"
