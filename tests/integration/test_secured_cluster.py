"""Both kinds of brokers speak to each other over TLS, and log in; nobody else is let in."""

from collections.abc import Callable, Mapping
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from tests.support.certificates import listener_settings
from tests.support.cluster import kafka_tools
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.member import BROKERS, CLIENTS, CLUSTER_KAFKA, Kind
from tests.support.command_line import pykafkalog
from tests.support.kafka_jars import java
from tests.support.sasl_client import JAAS
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PREFIX = f"listener.name.{BROKERS.lower()}."
LOGIN = 'username="broker" password="broker-secret" user_broker="broker-secret"'
CERTIFICATES = listener_settings(PREFIX)
MUTUAL_TLS = {
    "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{BROKERS}:SSL",
    **CERTIFICATES,
    f"{PREFIX}ssl.client.auth": "required",
}
PLAIN_OVER_TLS = {
    "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{BROKERS}:SASL_SSL",
    **CERTIFICATES,
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    f"{PREFIX}plain.sasl.jaas.config": f"{JAAS.format('plain.Plain')} {LOGIN};",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:broker;User:ANONYMOUS",
}


SCRAM = {
    **PLAIN_OVER_TLS,
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    f"{PREFIX}scram-sha-512.sasl.jaas.config": (
        f'{JAAS.format("scram.Scram")} username="broker" password="broker-secret";'
    ),
}
del SCRAM[f"{PREFIX}plain.sasl.jaas.config"]


@pytest.mark.parametrize("settings", [MUTUAL_TLS, PLAIN_OVER_TLS], ids=["TLS", "PLAIN"])
@pytest.mark.parametrize(
    "kinds", [(Kind.KAFKA, Kind.OURS, Kind.OURS), (Kind.OURS, Kind.KAFKA, Kind.OURS)]
)
def test_brokers_of_both_kinds_believe_each_other(
    kinds: tuple[Kind, ...], settings: Mapping[str, str], tmp_path: Path
) -> None:
    with BrokerCluster(tmp_path, kinds, settings=settings) as cluster:
        check_that_brokers_speak(cluster)


def users_by_kafka(zookeeper: str, directory: Path) -> None:
    """Make the brokers' user as Kafka's documentation says."""
    java(
        kafka_tools.CONFIGS,
        *("--zookeeper", zookeeper, "--alter", "--entity-type", "users"),
        *("--entity-name", "broker", "--add-config", "SCRAM-SHA-512=[password=broker-secret]"),
        version=CLUSTER_KAFKA,
    )


def users_by_ours(zookeeper: str, directory: Path) -> None:
    """Make the brokers' user with this project's command."""
    properties = directory / "users.properties"
    properties.write_text(f"zookeeper.connect={zookeeper}\n")
    words = ["users", "--add", "broker", "--mechanism", "SCRAM-SHA-512", "--password-file", "-"]
    done = pykafkalog(*words, "--offline", str(properties), stdin="broker-secret\n")
    assert done.returncode == 0, done


@pytest.mark.parametrize(
    ("kinds", "users"),
    [
        ((Kind.KAFKA, Kind.OURS, Kind.OURS), users_by_ours),
        ((Kind.OURS, Kind.KAFKA, Kind.OURS), users_by_kafka),
    ],
    ids=["user made by ours", "user made by Kafka"],
)
def test_brokers_of_both_kinds_log_in_with_scram(
    kinds: tuple[Kind, ...], users: Callable[[str, Path], None], tmp_path: Path
) -> None:
    """The user is in ZooKeeper before the first broker is; a wrong password lets nobody in."""

    def prepare(zookeeper: str) -> None:
        users(zookeeper, tmp_path)

    with BrokerCluster(tmp_path, kinds, settings=SCRAM, prepare=prepare) as cluster:
        check_that_brokers_speak(cluster)
        cluster[3].stop()
        wrong = {name: text.replace("broker-secret", "guess") for name, text in SCRAM.items()}
        cluster[3].begin(wrong)
        wait_until(lambda: "uthentication failed" in cluster[3].output(1 << 20), 60)
        cluster[3].kill()
        cluster[3].start()
        cluster.wait_until_whole()


def check_that_brokers_speak(cluster: BrokerCluster) -> None:
    """Replication, markers and verification of transactions all go over their listener."""
    cluster.create("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "id", "log_level": 0}
    )
    producer.init_transactions(60)
    for _ in range(3):
        producer.begin_transaction()
        for partition in range(3):
            producer.produce("t", b"v", partition=partition)
        producer.commit_transaction(60)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(3)])
    found = 0
    for _ in range(60):
        message = consumer.poll(1)
        found += message is not None and message.error() is None
        if found == 9:
            break
    consumer.close()
    assert found == 9
    cluster.wait_until_whole()
