"""Real clients with some permissions: they do what these allow, and get errors for the rest.

PYKAFKALOG_TEST_BROKER=apache runs the same on Apache Kafka.
"""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError as AioTopicDenied
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

from tests.support.command_in_process import in_process
from tests.support.either_broker import either_broker
from tests.support.kafka_jars import java
from tests.support.topics import make_topic

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "100",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
MAY, READ_ONLY, NOT = "may-both", "may-read", "not-known"
ME = "User:ANONYMOUS"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that allows anonymous clients some operations."""
    with either_broker(tmp_path_factory.mktemp("acls"), SETTINGS) as broker:
        where = broker.bootstrap
        make_topic(where, MAY, READ_ONLY, NOT, partitions=2)
        admin = AdminClient({"bootstrap.servers": where})
        producer = Producer({"bootstrap.servers": where})
        for topic in (MAY, READ_ONLY, NOT):
            producer.produce(topic, topic.encode(), partition=0)
        assert producer.flush(20) == 0
        for words in (
            # The cluster first: once it has a rule, only principals that a rule names may add more.
            ("--allow", ME, "--operation", "all", "--cluster"),
            ("--allow", ME, "--producer", "--topic", MAY, "--transactional-id", "may-id"),
            ("--allow", ME, "--consumer", "--topic", MAY, READ_ONLY),
            ("--allow", ME, "--consumer", "--group", "may-group", "--prefixed"),
            ("--allow", "nobody", "--operation", "all", "--topic", "*", "--group", "*"),
            ("--allow", "nobody", "--operation", "all", "--transactional-id", "*"),
        ):
            done = in_process("acls", "-b", where, "--add", *words)
            assert done.returncode == 0, done.stderr
        deadline = time.monotonic() + 20
        while NOT in admin.list_topics(timeout=10).topics:  # Kafka applies rules a little later
            assert time.monotonic() < deadline
        yield where


# ---- confluent-kafka


def deliveries(bootstrap: str, *topics: str, **settings: str) -> dict[str, str | None]:
    """The name of the error for each topic, None if the record was taken."""
    told: dict[str, str | None] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 8000, **settings})
    for topic in topics:
        producer.produce(
            topic,
            b"v",
            partition=0,
            on_delivery=lambda error, message: told.update(
                {message.topic(): None if error is None else error.name()}
            ),
        )
    producer.flush(20)
    return told


def test_a_producer_writes_to_the_topics_that_it_may_write_to(bootstrap: str) -> None:
    for idempotence in ("false", "true"):
        told = deliveries(bootstrap, MAY, READ_ONLY, NOT, **{"enable.idempotence": idempotence})
        assert told == {
            MAY: None,
            READ_ONLY: "TOPIC_AUTHORIZATION_FAILED",
            NOT: "TOPIC_AUTHORIZATION_FAILED",
        }


def test_a_transactional_id_that_is_not_the_clients(bootstrap: str) -> None:
    own = Producer({"bootstrap.servers": bootstrap, "transactional.id": "may-id"})
    own.init_transactions(20)
    own.begin_transaction()
    own.produce(MAY, b"in a transaction", partition=1)
    own.commit_transaction(20)
    other = Producer({"bootstrap.servers": bootstrap, "transactional.id": "not-mine"})
    with pytest.raises(KafkaException) as refused:
        other.init_transactions(20)
    code = refused.value.args[0].code()
    assert code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_listing_has_what_may_be_described(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert {MAY, READ_ONLY} <= set(admin.list_topics(timeout=10).topics) <= {MAY, READ_ONLY}
    for hidden in (NOT, "never-made"):
        error = admin.list_topics(hidden, timeout=10).topics[hidden].error
        assert error is not None
        assert error.name() == "TOPIC_AUTHORIZATION_FAILED"


def test_a_pattern_finds_what_may_be_described(bootstrap: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "may-group",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe(["^(may|not)-.*"])
    found: set[str] = set()
    deadline = time.monotonic() + 20
    while len(found) < 2 and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.add(message.topic())
    assert found == {MAY, READ_ONLY}
    assert {one.topic for one in consumer.assignment()} == {MAY, READ_ONLY}
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_group_that_is_not_the_clients(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "not-mine"})
    consumer.subscribe([MAY])
    message = None
    deadline = time.monotonic() + 20
    while message is None and time.monotonic() < deadline:
        message = consumer.poll(0.5)
    assert message is not None
    assert message.error().name() == "GROUP_AUTHORIZATION_FAILED"
    consumer.close()


def test_rules_are_described_made_and_deleted(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    rule = AclBinding(
        ResourceType.GROUP,
        "made-by-confluent",
        ResourcePatternType.LITERAL,
        "User:kim",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    chosen = AclBindingFilter(
        ResourceType.GROUP,
        "made-by-confluent",
        ResourcePatternType.MATCH,
        "User:kim",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin.create_acls([rule])[rule].result(10)
    deadline = time.monotonic() + 10
    while (found := admin.describe_acls(chosen).result(10)) != [rule]:
        assert time.monotonic() < deadline, found
    assert admin.delete_acls([chosen])[chosen].result(10) == [rule]
    while admin.describe_acls(chosen).result(10):
        assert time.monotonic() < deadline


# ---- kafka-python, aiokafka, Java


def test_kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, max_block_ms=8000)
    assert producer.send(MAY, b"v").get(10).topic == MAY
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send(READ_ONLY, b"v", partition=0).get(10)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send(NOT, b"v", partition=0).get(10)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id="may-group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=8000,
        enable_auto_commit=False,
    )
    consumer.subscribe(pattern="^(may|not)-.*")
    assert next(iter(consumer)).topic in (MAY, READ_ONLY)
    assert consumer.subscription() == {MAY, READ_ONLY}
    assert consumer.topics() == {MAY, READ_ONLY}
    consumer.close()
    stranger = KafkaConsumer(MAY, bootstrap_servers=bootstrap, group_id="not-mine")
    with pytest.raises(GroupAuthorizationFailedError):
        stranger.poll(8000)
    stranger.close(autocommit=False)


def test_aiokafka(bootstrap: str) -> None:
    async def go() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        await producer.send_and_wait(MAY, b"v")
        with pytest.raises(AioTopicDenied):
            await producer.send_and_wait(READ_ONLY, b"v", partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            MAY, bootstrap_servers=bootstrap, group_id="may-group", auto_offset_reset="earliest"
        )
        await consumer.start()
        assert (await asyncio.wait_for(consumer.getone(), 20)).topic == MAY
        await consumer.stop()

    asyncio.run(go())


def test_java(bootstrap: str) -> None:
    tools = "org.apache.kafka.tools"
    where = ("--bootstrap-server", bootstrap)
    console = (f"{tools}.ConsoleProducer", *where, "--max-block-ms", "8000")
    with ThreadPoolExecutor(3) as beside:
        allowed = beside.submit(java, *console, "--topic", MAY, stdin="from java\n", check=False)
        denied = beside.submit(java, *console, "--topic", NOT, stdin="from java\n", check=False)
        listed = beside.submit(java, f"{tools}.TopicCommand", *where, "--list")
        assert "AUTHORIZATION" not in allowed.result().stdout + allowed.result().stderr
        said = denied.result().stdout + denied.result().stderr
        assert "TopicAuthorizationException" in said or "TOPIC_AUTHORIZATION_FAILED" in said
        assert listed.result().stdout.split() == [MAY, READ_ONLY]
    consumer = (f"{tools}.consumer.ConsoleConsumer", *where, "--from-beginning")
    read = java(
        *consumer,
        *("--topic", READ_ONLY, "--group", "may-group-java"),
        *("--timeout-ms", "15000", "--max-messages", "1"),
    )
    assert read.stdout == f"{READ_ONLY}\n"
