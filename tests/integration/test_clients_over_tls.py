"""Every client library over TLS, and certificates of both sides: records, groups, transactions.

PYKAFKALOG_TEST_BROKER=apache runs the same on Apache Kafka.
"""

import asyncio
import contextlib
import itertools
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioTopic
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Place
from kafka.structs import OffsetAndMetadata

from tests.integration.conftest import QUICK_GROUPS
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import ca_pem, client_identity
from tests.support.command_line import pykafkalog
from tests.support.either_broker import EitherBroker, either_broker
from tests.support.kafka_jars import KAFKA_VERSION, ROOT, java
from tests.support.tls_brokers import encrypt, librdkafka_settings, tls_port, write_client_file

TOOLS = "org.apache.kafka.tools"
VALUES = [f"value {number} ".encode() * 50 for number in range(300)]
_numbers = itertools.count()


class Served(NamedTuple):
    """A broker whose clients must show a certificate."""

    address: str
    files: dict[str, str]
    directory: Path
    broker: EitherBroker

    @property
    def librdkafka(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, **librdkafka_settings(self.files)}

    @property
    def kafka_python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SSL",
            "ssl_cafile": self.files["ca"],
            "ssl_certfile": self.files["client"],
            "ssl_keyfile": self.files["client"],
        }

    @property
    def aiokafka(self) -> dict[str, Any]:
        context = create_ssl_context(
            cafile=self.files["ca"], certfile=self.files["client"], keyfile=self.files["client"]
        )
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SSL",
            "ssl_context": context,
        }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("tls")
    broker = either_broker(directory / "broker", QUICK_GROUPS)
    files = encrypt(broker, directory, ssl__client__auth="required")
    with broker:
        yield Served(f"localhost:{tls_port(broker)}", files, directory, broker)


@pytest.fixture
def topic() -> str:
    return f"tls-{next(_numbers)}"


def test_confluent_kafka(served: Served, topic: str) -> None:
    admin = AdminClient(served.librdkafka)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
    producer = Producer({**served.librdkafka, "transactional.id": topic})
    producer.init_transactions(20)
    consumer = Consumer(
        {
            **served.librdkafka,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        producer.begin_transaction()
        for value in VALUES:
            producer.produce(topic, value)
        producer.commit_transaction(20)
        producer.begin_transaction()
        producer.produce(topic, b"dropped")
        producer.flush(20)
        producer.abort_transaction(20)
        consumer.subscribe([topic])
        got = []
        while len(got) < len(VALUES):
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            got.append(message.value())
        assert sorted(got) == sorted(VALUES)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    admin.delete_topics([topic])[topic].result(20)


def test_kafka_python(served: Served, topic: str) -> None:
    producer = KafkaProducer(**served.kafka_python, transactional_id=topic)
    producer.init_transactions()
    consumer = KafkaConsumer(
        topic,
        **served.kafka_python,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
        isolation_level="read_committed",
    )
    try:
        producer.begin_transaction()
        for value in VALUES:
            producer.send(topic, value, partition=0)
        place = {Place(topic, 0): OffsetAndMetadata(3, "", -1)}
        producer.send_offsets_to_transaction(place, f"{topic}-other")
        producer.commit_transaction()
        assert [m.value for _, m in zip(VALUES, consumer, strict=False)] == VALUES
        consumer.commit()
    finally:
        producer.close()
        consumer.close()
    admin = KafkaAdminClient(**served.kafka_python)
    try:
        assert topic in _names(admin.list_topics())
    finally:
        admin.close()


def _names(listed: Any) -> list[str]:
    return [one if isinstance(one, str) else one["name"] for one in listed]


def test_aiokafka(served: Served, topic: str) -> None:
    async def scenario() -> None:
        admin = AIOKafkaAdminClient(**served.aiokafka)
        await admin.start()
        await admin.create_topics([AioTopic(topic, 1, 1)])
        await admin.close()
        async with (
            AIOKafkaProducer(**served.aiokafka, transactional_id=topic) as producer,
            producer.transaction(),
        ):
            for value in VALUES:
                await producer.send(topic, value)
            await producer.send_offsets_to_transaction(
                {TopicPartition(topic, 0): 3}, f"{topic}-other"
            )
        async with AIOKafkaConsumer(
            topic,
            **served.aiokafka,
            group_id=topic,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            got = [await asyncio.wait_for(consumer.getone(), 20) for _ in VALUES]
            assert [m.value for m in got] == VALUES
            await consumer.commit()

    asyncio.run(scenario())


def test_java_clients_and_tools(served: Served, topic: str) -> None:
    file = str(write_client_file(served.directory / f"{topic}.properties", served.files))
    told = java(
        str(ROOT / "tests/integration/ClientTour.java"),
        *(served.address, f"{topic}-tour", f"{topic}-group", file),
    ).stdout.splitlines()
    assert told[-5:] == [
        f"clients {KAFKA_VERSION}",
        "end 100",
        "committed 100",
        "in transactions 1 committed 103",
        "groups 0",
    ]
    told = java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "2000", "--record-size", "1000"),
        *("--throughput", "-1", "--bootstrap-server", served.address, "--command-config", file),
        *("--transaction-duration-ms", "50", "--transactional-id", topic),
    ).stdout.splitlines()
    assert "2000 records sent" in told[-1]
    told = java(
        f"{TOOLS}.TopicCommand",
        *("--bootstrap-server", served.address, "--command-config", file, "--list"),
    ).stdout.splitlines()
    assert topic in told


def test_without_a_certificate_nobody_is_served(served: Served) -> None:
    settings = {"bootstrap.servers": served.address, "security.protocol": "SSL"}
    admin = AdminClient({**settings, "ssl.ca.location": served.files["ca"], "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)
    context = ssl.create_default_context(cadata=ca_pem())
    foreign = client_identity(name="foreign CA")
    path = served.directory / "foreign.pem"
    path.write_bytes(foreign.pem())
    context.load_cert_chain(path)
    host, _, port = served.address.partition(":")
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        pytest.raises(OSError),
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        encrypted.sendall(bytes.fromhex("0000000a0012000000000001ffff"))
        if not encrypted.recv(10):
            raise ConnectionError("closed")


def test_the_command_line_takes_the_file_of_kafkas_tools(served: Served, topic: str) -> None:
    if not isinstance(served.broker, BrokerProcess):
        pytest.skip("our own command line")
    file = str(write_client_file(served.directory / f"{topic}.properties", served.files))

    def run(*words: str, stdin: str = "") -> str:
        done = pykafkalog(*words, "-b", served.address, "--command-config", file, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("topics", "--create", topic)
    run("produce", topic, stdin="a\nb\n")
    assert run("consume", topic, "--from-beginning", "--exit").splitlines() == ["a", "b"]
    assert str(served.broker.log_dir) in run("log-dirs")
    assert served.address.split(":")[1] in run("cluster")
    without = pykafkalog("topics", "-b", served.address)
    assert without.returncode == 1
    assert "speaks TLS: security.protocol=SSL" in without.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
@pytest.mark.parametrize(
    ("words", "typed", "text"),
    [
        (["-tls1_2", "-fallback_scsv"], "Q", "inappropriate fallback"),
        (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "Q", "protocol version"),
        (["-tls1_2"], "R", "no renegotiation"),
    ],
)
def test_downgrades_and_renegotiation_are_refused(
    served: Served, words: list[str], typed: str, text: str
) -> None:
    if not isinstance(served.broker, BrokerProcess):
        pytest.skip("Java words it otherwise")
    own = served.files["client"]
    with subprocess.Popen(
        ["openssl", "s_client", "-connect", served.address, "-cert", own, "-key", own, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        told = ""
        for line in client.stdout:
            told += line
            if "Verify return code" in line or "Verification" in line:
                with contextlib.suppress(BrokenPipeError):  # refused, and gone already
                    client.stdin.write(f"{typed}\n")
                    client.stdin.flush()
                break
        told += client.communicate(timeout=20)[0]
    assert text in told
