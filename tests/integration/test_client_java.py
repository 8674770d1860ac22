"""Apache Kafka's own Java clients and, on the clients of their release, its tools; unmodified."""

import re

import pytest

from tests.support.kafka_jars import KAFKA_VERSION, ROOT, java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOOLS = "org.apache.kafka.tools"


def test_admin_client_producer_and_consumer(bootstrap: str, topic: str, group: str) -> None:
    """The tour has the newest clients; the tools run on older ones."""
    result = java(
        str(ROOT / "tests/integration/ClientTour.java"), bootstrap, f"{topic}-tour", group
    )
    assert result.stdout.splitlines()[-5:] == [
        f"clients {KAFKA_VERSION}",
        "end 100",
        "committed 100",
        "in transactions 1 committed 103",
        "groups 0",
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer_with_every_codec(
    bootstrap: str, topic: str, codec: str
) -> None:
    lines = [f"key{i}\tvalue {i}" for i in range(100)]
    java(
        f"{TOOLS}.ConsoleProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true"),
        stdin="\n".join(lines) + "\n",
    )
    result = java(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
        *(
            "--max-messages",
            "100",
            "--timeout-ms",
            "30000",
            "--formatter-property",
            "print.key=true",
        ),
    )
    assert result.stdout.splitlines() == lines


def test_perf_tools(bootstrap: str, topic: str) -> None:
    result = java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "50000", "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", bootstrap),
    )
    assert "50000 records sent" in result.stdout
    result = java(
        f"{TOOLS}.ConsumerPerformance",
        *("--topic", topic, "--num-records", "50000", "--bootstrap-server", bootstrap),
        *("--timeout", "30000"),
    )
    assert ", 50000, " in result.stdout.splitlines()[-1] + ","


def test_kafka_topics(bootstrap: str, topic: str) -> None:
    def topics(*args: str) -> str:
        return java(f"{TOOLS}.TopicCommand", "--bootstrap-server", bootstrap, *args).stdout

    assert f"Created topic {topic}." in topics(
        *("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1"),
        *("--config", "retention.ms=60000"),
    )
    assert topic in topics("--list").splitlines()
    described = topics("--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    topics("--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in topics("--describe", "--topic", topic)
    topics("--delete", "--topic", topic)
    assert topic not in topics("--list").splitlines()


def test_kafka_configs(bootstrap: str, topic: str) -> None:
    java(f"{TOOLS}.TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic)

    def configs(*args: str) -> str:
        return java(
            "kafka.admin.ConfigCommand",
            "--bootstrap-server",
            bootstrap,
            *("--entity-type", "topics", "--entity-name", topic),
            *args,
        ).stdout

    configs("--alter", "--add-config", "segment.bytes=1048576,cleanup.policy=[compact,delete]")
    described = configs("--describe")
    assert "segment.bytes=1048576" in described
    assert "cleanup.policy=compact,delete" in described
    configs("--alter", "--delete-config", "segment.bytes")
    assert "segment.bytes=" not in configs("--describe")
    assert "DEFAULT_CONFIG:log.segment.bytes=1073741824" in configs("--describe", "--all")


def test_kafka_get_offsets(bootstrap: str, topic: str) -> None:
    java(
        f"{TOOLS}.ConsoleProducer",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        stdin="".join(f"{i}\n" for i in range(7)),
    )
    for time, expected in (("latest", 7), ("earliest", 0), ("-1", 7), ("-2", 0)):
        result = java(
            f"{TOOLS}.GetOffsetShell",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--time", time),
        )
        assert result.stdout.strip() == f"{topic}:0:{expected}"
    result = java(
        f"{TOOLS}.GetOffsetShell",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--time", "max-timestamp"),
    )
    assert re.fullmatch(rf"{topic}:0:[0-6]", result.stdout.strip())


def test_kafka_consumer_groups(bootstrap: str, topic: str, group: str) -> None:
    java(
        f"{TOOLS}.ConsoleProducer",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        stdin="".join(f"{i}\n" for i in range(10)),
    )
    java(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--group", group),
        *("--max-messages", "10", "--timeout-ms", "30000"),
    )

    def groups(*args: str) -> str:
        return java(
            f"{TOOLS}.consumer.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, *args
        ).stdout

    def describe_row() -> list[str]:
        lines = groups("--describe", "--group", group).splitlines()
        return next(line for line in lines if topic in line).split()

    assert group in groups("--list").split()
    row = describe_row()
    assert row[:6] == [group, topic, "0", "10", "10", "0"]
    groups("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "4", "--execute")
    row = describe_row()
    assert "4" in row and "6" in row
    assert "Empty" in groups("--describe", "--group", group, "--state")
    groups("--delete", "--group", group)
    assert group not in groups("--list").split()
