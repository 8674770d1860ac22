"""Client libraries of Python over a listener that authenticates, with each mechanism they have."""

import asyncio
import logging
import uuid
from pathlib import Path
from urllib.request import urlopen

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError as AsyncError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as PythonError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.support.ports import free_port
from tests.support.sasl_broker import (
    PASSWORDS,
    WAYS,
    SaslBroker,
    SaslBrokers,
    bearer_token,
    librdkafka_settings,
    python_settings,
    sasl_broker,
)

COUNT = 100


class Tokens(AbstractTokenProvider):
    def token(self) -> str:
        return bearer_token()


class AsyncTokens(AsyncTokenProvider):
    async def token(self) -> str:
        return bearer_token()


@pytest.fixture(scope="module")
def broker(sasl_brokers: SaslBrokers) -> SaslBroker:
    return sasl_brokers["SASL_PLAINTEXT"]


@pytest.fixture
def name() -> str:
    return f"sasl-{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_confluent_kafka(
    sasl_brokers: SaslBrokers, name: str, protocol: str, mechanism: str
) -> None:
    broker = sasl_brokers[protocol]
    settings = librdkafka_settings(broker, mechanism)
    admin = AdminClient(settings)
    admin.poll(0)
    admin.create_topics([NewTopic(name, 2)], request_timeout=20)[name].result(20)
    assert name in admin.list_topics(timeout=20).topics
    producer = Producer({**settings, "transactional.id": name})
    producer.init_transactions(20)
    for keep in (False, True):
        producer.begin_transaction()
        for n in range(COUNT):
            producer.produce(name, f"{keep} {n}")
        (producer.commit_transaction if keep else producer.abort_transaction)(20)
    consumer = Consumer({**settings, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    got = []
    while len(got) < COUNT:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None, message.error()
        got.append(message.value())
    assert all(value.startswith(b"True") for value in got)
    consumer.commit()
    consumer.close()


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_kafka_python(sasl_brokers: SaslBrokers, name: str, protocol: str, mechanism: str) -> None:
    broker = sasl_brokers[protocol]
    settings = python_settings(broker, mechanism, Tokens())
    producer = KafkaProducer(**settings, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    for n in range(COUNT):
        producer.send(name, str(n).encode())
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(
        name,
        **settings,
        group_id=name,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=20_000,
    )
    assert {next(consumer).value for _ in range(COUNT)} == {str(n).encode() for n in range(COUNT)}
    consumer.commit()
    consumer.close()
    admin = KafkaAdminClient(**settings)
    assert name in admin.list_topics()
    admin.close()


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_aiokafka(sasl_brokers: SaslBrokers, name: str, protocol: str, mechanism: str) -> None:
    broker = sasl_brokers[protocol]

    async def scenario() -> None:
        settings = python_settings(broker, mechanism, AsyncTokens())
        async with (
            AIOKafkaProducer(**settings, transactional_id=name) as producer,
            producer.transaction(),
        ):
            for n in range(COUNT):
                await producer.send_and_wait(name, str(n).encode())
        async with AIOKafkaConsumer(
            name, **settings, group_id=name, auto_offset_reset="earliest"
        ) as consumer:
            got = [await asyncio.wait_for(consumer.getone(), 20) for _ in range(COUNT)]
            await consumer.commit()
        assert {message.value for message in got} == {str(n).encode() for n in range(COUNT)}
        admin = AIOKafkaAdminClient(**settings)
        await admin.start()
        assert name in await admin.list_topics()
        await admin.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_confluent_kafka_reports_a_wrong_password(broker: SaslBroker, mechanism: str) -> None:
    errors: list[KafkaError] = []
    settings = librdkafka_settings(broker, mechanism, "wrong")
    admin = AdminClient({**settings, "error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)
    admin.poll(1)
    assert KafkaError._AUTHENTICATION in {error.code() for error in errors}


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_wrong_password_does_not_connect_kafka_python(broker: SaslBroker, mechanism: str) -> None:
    """Which error it raises depends on whether it reads the answer before the end of the stream."""
    settings = python_settings(broker, mechanism, None, "wrong")
    with pytest.raises(PythonError):
        KafkaAdminClient(**settings, bootstrap_timeout_ms=1000)


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_aiokafka_reports_a_wrong_password(
    broker: SaslBroker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        producer = AIOKafkaProducer(**python_settings(broker, mechanism, None, "wrong"))
        try:
            with pytest.raises(AsyncError):
                await producer.start()
        finally:
            await producer.stop()

    caplog.set_level(logging.ERROR)
    asyncio.run(scenario())
    assert "uthentication failed" in caplog.text


def scraped(address: str, name: str) -> float:
    with urlopen(f"http://{address}/metrics") as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{"))


def test_a_client_that_renews_its_session_goes_on(tmp_path: Path, name: str) -> None:
    """librdkafka authenticates again before the end of its session (KIP-368)."""
    metrics = f"127.0.0.1:{free_port()}"
    settings = {"connections.max.reauth.ms": "2000", "metrics.http.listener": metrics}
    with sasl_broker(tmp_path, settings) as broker:
        producer = Producer(librdkafka_settings(broker, "SCRAM-SHA-256"))
        failures: list[KafkaError] = []
        for n in range(60):
            producer.produce(
                name, str(n), on_delivery=lambda error, _: failures.append(error) if error else None
            )
            assert producer.flush(20) == 0
            producer.poll(0.1)
        assert failures == []
        prefix = "kafka_server_socketservermetrics_"
        assert scraped(metrics, prefix + "successful_reauthentication_total") >= 2
        assert scraped(metrics, prefix + "expired_connections_killed_count_total") == 0
        assert scraped(metrics, prefix + "failed_authentication_total") == 0
