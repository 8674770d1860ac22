"""Apache Kafka 3.9 and this broker read each other's nodes in ZooKeeper, byte for byte.

Kafka makes nodes of each kind, which our encoders must write as they stand; our store changes
nodes, and Kafka must hear of it by the notifications.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from broker.cluster.metadata_store import Create, Put
from broker.cluster.tree_values import (
    broker_config_path,
    encode_cluster_id,
    encode_config,
)
from broker.zookeeper.zookeeper_store import ZooKeeperStore
from storage.log_dir import read_meta_properties
from storage.os_filesystem import OsFileSystem
from storage.waits import Work
from tests.support.cluster.member import CLUSTER_KAFKA, Kind, Member, new_place
from tests.support.kafka_jars import java
from tests.support.kafka_nodes import CHECKS, Nodes
from tests.support.zookeeper import ZooKeeper
from tests.support.zookeeper_stores import run_on_loop, with_store

pytestmark = pytest.mark.conformance

QUOTA = "producer_byte_rate=1048576"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    directory = tmp_path_factory.mktemp("kafka")
    with ZooKeeper(directory / "zookeeper") as server:
        member = Member(
            new_place(
                3,
                directory / "broker",
                f"{server.connect}/kafka/golden",
                {
                    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                    "allow.everyone.if.no.acl.found": "true",
                    "super.users": "User:ANONYMOUS",
                    "broker.rack": "r1",
                    # More threads get new buffers while the old ones still stand: the usual 128 MiB
                    # do not always find place twice in the heap of a test.
                    "log.cleaner.dedupe.buffer.size": "4194304",
                },
            ),
            Kind.KAFKA,
        )
        try:
            yield member.start()
        finally:
            member.kill()


@pytest.fixture(scope="module")
def admin(kafka: Member) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


def done(futures: dict[object, object]) -> None:
    for future in futures.values():
        future.result(30)  # type: ignore[attr-defined]


def with_tree(kafka: Member, scenario: Callable[[ZooKeeperStore], Work[None]]) -> None:
    run_on_loop(with_store(kafka.place.zookeeper, scenario))


@pytest.fixture(scope="module")
def nodes(kafka: Member, admin: AdminClient) -> Nodes:
    """Every node of Kafka's tree after changes of each kind; None: a node without a value."""
    topic = NewTopic("t", num_partitions=12, replication_factor=1, config={"retention.ms": "7"})
    done(admin.create_topics([topic]))
    for kind, name, key, value in (
        (ConfigResource.Type.TOPIC, "t", "segment.bytes", "1048576"),
        (ConfigResource.Type.BROKER, "3", "log.cleaner.threads", "2"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
    for entity, config in (
        (("brokers", "--entity-default"), "log.retention.ms=86400000"),
        (
            ("users", "--entity-name", "us er", "--entity-type", "clients", "--entity-default"),
            QUOTA,
        ),
    ):
        java(
            *("kafka.admin.ConfigCommand", "--bootstrap-server", kafka.bootstrap, "--alter"),
            *("--entity-type", *entity, "--add-config", config),
            version=CLUSTER_KAFKA,
        )
    for pattern_type, name in (
        (ResourcePatternType.LITERAL, "t"),
        (ResourcePatternType.PREFIXED, "pre"),
    ):
        for user in ("User:alice", "User:böb"):
            binding = AclBinding(
                *(ResourceType.TOPIC, name, pattern_type, user, "*"),
                *(AclOperation.DESCRIBE_CONFIGS, AclPermissionType.ALLOW),
            )
            done(admin.create_acls([binding]))
    upsertion = UserScramCredentialUpsertion(
        "us er", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret"
    )
    done(admin.alter_user_scram_credentials([upsertion]))
    found: dict[str, bytes | None] = {}

    async def read(store: ZooKeeperStore) -> None:
        client, chroot = store._session.client, store._tree.chroot
        for path in await store._reads.subtree(""):
            found[path] = client.get(chroot + path or "/")[0]

    with_tree(kafka, read)
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_our_encoders_write_kafkas_nodes(check: Callable[[Nodes], None], nodes: Nodes) -> None:
    check(nodes)


def test_the_directory_is_of_the_cluster_and_of_version_0(nodes: Nodes, kafka: Member) -> None:
    meta = read_meta_properties(OsFileSystem(), str(kafka.place.log_dir))
    assert meta is not None
    assert (meta.version, meta.node_id) == (0, 3)
    assert meta.cluster_id is not None
    assert nodes["/cluster/id"] == encode_cluster_id(meta.cluster_id)


def test_kafka_hears_of_what_is_changed_here(kafka: Member, admin: AdminClient) -> None:
    def threads() -> str:
        resource = ConfigResource(ConfigResource.Type.BROKER, "3")
        (future,) = admin.describe_configs([resource]).values()
        return str(future.result(30)["log.cleaner.threads"].value)

    wanted = str(int(threads()) + 1)  # Kafka takes no more than double

    async def change(store: ZooKeeperStore) -> None:
        path = broker_config_path(3)
        node = await store.get(path)
        value = encode_config({"log.cleaner.threads": wanted})
        await store.apply([Create(path, value) if node is None else Put(path, value)])
        rules = b'{"version":1,"acls":[{"principal":"User:carol","permissionType":"Allow",'
        rules += b'"operation":"Read","host":"*"}]}'
        await store.apply(
            [
                Create("/kafka-acl/Group/g", rules),
                Create("/kafka-acl-extended/prefixed/Group/pg", rules),
            ]
        )

    with_tree(kafka, change)

    def groups() -> set[str]:
        every = AclBindingFilter(
            *(ResourceType.GROUP, None, ResourcePatternType.ANY, None, None),
            *(AclOperation.ANY, AclPermissionType.ANY),
        )
        return {rule.name for rule in admin.describe_acls(every).result(30)}

    deadline = time.monotonic() + 60
    while (threads(), groups()) != (wanted, {"g", "pg"}) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (threads(), groups()) == (wanted, {"g", "pg"}), kafka.output()
