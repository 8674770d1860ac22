"""The programs that are tried with this broker, their tests and versions.

`recording` stores the tests' results, `table` makes the tables of README.md and docs/ecosystem.md
from the results and this list.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Final

from tests.support.ecosystem.environments import required_version
from tests.support.ecosystem.jars import version_of
from tests.support.kafka_jars import KAFKA_VERSION, TOOLS_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One line of the table."""

    name: str
    version: Callable[[], str]
    """Returns the version that the tests use; called when they run."""
    tests: tuple[str, ...]
    """Files of the tests, from the root of the checkout."""
    tried: str
    """The work of the tests with the program."""


def _listed(name: str, *distributions: str) -> str:
    first, *clients = distributions
    version = required_version(name, first)
    with_clients = ", ".join(f"{one} {required_version(name, one)}" for one in clients)
    return f"{version} ({with_clients})" if clients else version


PROGRAMS: Final = (
    Program(
        name="Kafka Connect, distributed",
        version=partial(version_of, "connect"),
        tests=("tests/ecosystem/test_kafka_connect.py",),
        tried="a file to a topic by an exactly-once source, the topic to a file; "
        "worker and broker killed",
    ),
    Program(
        name="MirrorMaker 2",
        version=partial(version_of, "connect"),
        tests=("tests/ecosystem/test_mirror_maker.py",),
        tried="a topic with its config and a group's offsets to another broker, exactly once; "
        "mirror and both brokers killed",
    ),
    Program(
        name="Flink",
        version=partial(version_of, "flink"),
        tests=("tests/ecosystem/test_flink.py",),
        tried="totals by key from topic to topic, exactly once; job and broker killed",
    ),
    Program(
        name="Quix Streams",
        version=partial(
            _listed,
            "quixstreams",
            "quixstreams",
            "confluent-kafka",
        ),
        tests=("tests/ecosystem/test_quixstreams.py",),
        tried="counts by key with state, exactly once; application and broker killed",
    ),
    Program(
        name="Faust",
        version=partial(_listed, "faust", "faust-streaming", "aiokafka"),
        tests=("tests/ecosystem/test_faust.py",),
        tried="counts by key in a table that a restarted worker reads back; broker killed",
    ),
    Program(
        name="FastStream",
        version=partial(_listed, "faststream", "faststream", "aiokafka", "confluent-kafka"),
        tests=("tests/ecosystem/test_faststream.py",),
        tried="a service from topic to topic over either client; service and broker killed",
    ),
    Program(
        name="Celery",
        version=partial(_listed, "celery", "celery", "kombu", "confluent-kafka"),
        tests=("tests/ecosystem/test_celery.py",),
        tried="tasks over kombu's confluentkafka transport; worker and broker killed",
    ),
    Program(
        name="kafka-python",
        version=partial(metadata.version, "kafka-python"),
        tests=("tests/integration/test_client_kafka_python.py",),
        tried="produce, consume, groups, admin",
    ),
    Program(
        name="confluent-kafka (librdkafka)",
        version=partial(metadata.version, "confluent-kafka"),
        tests=("tests/integration/test_client_confluent.py",),
        tried="produce, consume, groups, admin",
    ),
    Program(
        name="aiokafka",
        version=partial(metadata.version, "aiokafka"),
        tests=("tests/integration/test_client_aiokafka.py",),
        tried="produce, consume, groups",
    ),
    Program(
        name="Java clients and tools",
        version=lambda: f"{KAFKA_VERSION}, tools {TOOLS_VERSION}",
        tests=(
            "tests/integration/test_client_java.py",
            "tests/integration/test_transactions_java.py",
        ),
        tried="console and performance tools, topics, groups, configs, transactions",
    ),
    Program(
        name="Kafka Streams",
        version=lambda: TOOLS_VERSION,
        tests=("tests/integration/test_streams.py",),
        tried="a word count with RocksDB, exactly once; application and broker killed",
    ),
    Program(
        name="Spark",
        version=partial(metadata.version, "pyspark"),
        tests=("tests/integration/test_client_spark.py",),
        tried="Structured Streaming and batches, from topic to topic",
    ),
)
