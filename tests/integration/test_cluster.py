"""Three brokers, replication factor 3: clients, failures of single brokers, Kafka 3.9's tools.

`PYKAFKALOG_TEST_BROKER=apache` plays all of it on three brokers of Apache Kafka 3.9, the oracle.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.anomalies.cluster_load import ClusterLoad
from tests.anomalies.workload.crowd import FEW_OVER_A_CLUSTER
from tests.support.cluster import kafka_tools, replicas
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.member import Kind, Member
from tests.support.cluster.view import ClusterView
from tests.support.command_in_process import in_process
from tests.support.either_broker import ON_APACHE
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

KINDS = (Kind.KAFKA if ON_APACHE else Kind.OURS,) * 3
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """One cluster for all tests of the file."""
    # Kafka's throttles let the share of idle windows through: 11 seconds' worth by default.
    windows = {"replication.quota.window.num": "2"}
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), KINDS, settings=windows) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: BrokerCluster) -> Iterator[BrokerCluster]:
    """The shared cluster, whole before and after each test."""
    shared.wait_until_whole()
    yield shared
    for member in shared:
        if not member.running:
            member.begin()
    shared.wait_until_whole()


def send(
    cluster: BrokerCluster,
    topic: str,
    count: int,
    partition: int = 0,
    value: bytes | None = None,
    **more: object,
) -> int:
    """Produce with acks=all; return how many were acknowledged."""
    acknowledged = 0

    def delivered(error: object, _: object) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, **more}
    )
    for number in range(count):
        content = f"value-{number}" if value is None else value
        producer.produce(topic, content, partition=partition, on_delivery=delivered)
    producer.flush(PATIENCE_S)
    return acknowledged


def read(
    bootstrap: str, topic: str, count: int, *, group: str = "unused", partition: int | None = 0
) -> list[str]:
    """Read so many values, by assignment or (without a partition) as a member of the group."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
    )
    found: list[str] = []
    try:
        if partition is None:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append(message.value().decode())
        if partition is None:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def directories(cluster: BrokerCluster, topic: str) -> dict[int, set[str]]:
    """Broker id to the partition directories of a topic."""
    return {
        member.broker_id: {
            name
            for name in replicas.partitions_of(member.place.log_dir)
            if name.rpartition("-")[0] == topic
        }
        for member in cluster
    }


def in_sync(view: ClusterView, topic: str, partition: int = 0) -> set[int]:
    """The in-sync replicas."""
    place = view.partitions.get((topic, partition))
    return set() if place is None else set(place.isr)


def leader_of(view: ClusterView, topic: str) -> int | None:
    """The leader of the first partition; None where the topic is not known yet."""
    place = view.partitions.get((topic, 0))
    return None if place is None else place.leader


# ---- replication


def test_records_lie_on_all_replicas_and_are_read_through_any_broker(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    for partition in range(3):
        assert send(cluster, topic, 100, partition) == 100
    for member in cluster:
        for partition in range(3):
            values = read(member.bootstrap, topic, 100, partition=partition)
            assert values == [f"value-{number}" for number in range(100)]
    dirs = cluster.log_dirs()
    wait_until(lambda: not replicas.differences(dirs, whole=True), PATIENCE_S)
    assert replicas.compared_batches(dirs) >= 9


def test_a_follower_that_dies_leaves_the_isr_and_comes_back(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    assert send(cluster, topic, 50) == 50
    cluster[3].kill()
    cluster.wait_until(lambda view: in_sync(view, topic) == {1, 2})
    assert f"{topic}-0" in kafka_tools.under_replicated(cluster[1].bootstrap)
    assert send(cluster, topic, 50) == 50
    cluster[3].start()
    cluster.wait_until_whole()
    assert kafka_tools.under_replicated(cluster[3].bootstrap) == []
    dirs = cluster.log_dirs()
    wait_until(lambda: not replicas.differences(dirs, whole=True), PATIENCE_S)


def test_a_follower_that_lags_leaves_the_isr_until_it_has_caught_up(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    cluster[2].pause()
    try:
        assert send(cluster, topic, 20) == 20  # Acknowledged once the one that lags is out.
        assert in_sync(cluster.view(), topic) == {1, 3}
    finally:
        cluster[2].resume()
    cluster.wait_until_whole()


def test_a_follower_that_lost_its_disk_gets_everything_again(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    assert send(cluster, topic, 200) == 200
    cluster[2].kill()
    cluster[2].empty_directory()
    cluster[2].start()
    cluster.wait_until_whole()
    cluster[1].kill()
    cluster.wait_for_leader((topic, 0), other_than=1)
    assert len(read(cluster[2].bootstrap, topic, 200)) == 200


def test_the_next_leader_has_every_acknowledged_record(cluster: BrokerCluster, topic: str) -> None:
    cluster.create(topic, [[1, 2, 3]])
    assert send(cluster, topic, 300) == 300
    before = cluster.view().partitions[topic, 0].epoch
    cluster[1].kill()
    leader = cluster.wait_for_leader((topic, 0), other_than=1)
    assert cluster.view().partitions[topic, 0].epoch > before
    values = read(cluster[leader].bootstrap, topic, 300)
    assert values == [f"value-{number}" for number in range(300)]
    assert send(cluster, topic, 10) == 10


def test_below_min_insync_replicas_nothing_is_acknowledged(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    for broker in (2, 3):
        cluster[broker].kill()
    cluster.wait_until(lambda view: in_sync(view, topic) == {1})
    quick = {"message.timeout.ms": 2000, "retries": 0}
    assert send(cluster, topic, 3, **quick) == 0
    cluster[2].start()
    cluster.wait_until(lambda view: in_sync(view, topic) >= {1, 2})
    assert send(cluster, topic, 3) == 3


def test_a_controlled_shutdown_moves_leaders_before_the_broker_ends(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[2, 3, 1]])
    cluster[2].stop()
    view = cluster[1].view()
    assert view is not None
    assert view.partitions[topic, 0].leader in (1, 3)
    assert in_sync(view, topic) == {1, 3}
    assert send(cluster, topic, 10) == 10


@pytest.mark.skipif(ON_APACHE, reason="a broker that has just registered may call it unknown")
def test_a_member_that_starts_never_says_that_a_topic_is_unknown(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    for stop in (cluster[2].stop, cluster[2].kill):
        stop()
        cluster[2].begin()
        client: list[WireClient] = []

        def connected(client: list[WireClient] = client) -> bool:
            with suppress(ConnectionRefusedError):
                client.append(WireClient(cluster[2].place.client_port))
            return bool(client)

        wait_until(connected, PATIENCE_S)
        answer = client[0].call(ApiKey.METADATA, 9, asked)
        client[0].close()
        assert [found.error_code for found in answer.topics] == [ErrorCode.NONE]
        cluster.wait_until_whole()


# ---- topics


def test_a_deleted_topic_leaves_every_broker(cluster: BrokerCluster, topic: str) -> None:
    cluster.create(topic, [[1, 2, 3], [2, 3, 1]])
    assert all(len(names) == 2 for names in directories(cluster, topic).values())
    cluster.delete(topic)
    cluster.wait_until(lambda view: (topic, 0) not in view.partitions)
    wait_until(lambda: not any(directories(cluster, topic).values()), PATIENCE_S)


def test_a_topic_is_deleted_where_it_was_when_its_broker_was_away(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    cluster[3].kill()
    cluster.delete(topic)
    cluster[3].start()
    wait_until(lambda: not any(directories(cluster, topic).values()), PATIENCE_S)


def test_partitions_are_added_on_all_brokers(cluster: BrokerCluster, topic: str) -> None:
    cluster.create(topic, [[1, 2, 3]])
    words = ("--alter", "--topic", topic, "--partitions", "3")
    kafka_tools.tool(kafka_tools.TOPICS, *words, bootstrap=cluster[2].bootstrap)
    cluster.wait_until(lambda view: in_sync(view, topic, 2) == {1, 2, 3})
    assert send(cluster, topic, 5, partition=2) == 5


def test_kafka_topics_places_replicas_on_all_brokers(cluster: BrokerCluster, topic: str) -> None:
    words = ("--create", "--topic", topic, "--partitions", "6", "--replication-factor", "3")
    kafka_tools.tool(kafka_tools.TOPICS, *words, bootstrap=cluster[3].bootstrap)
    cluster.wait_until(lambda view: in_sync(view, topic, 5) == {1, 2, 3})
    leaders = [cluster.view().partitions[topic, number].leader for number in range(6)]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


# ---- the tools of an operator


def test_kafka_leader_election_gives_the_preferred_replica_its_place_back(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[3, 1, 2]])
    cluster[3].stop()
    cluster.wait_for_leader((topic, 0), other_than=3)
    cluster[3].start()
    cluster.wait_until_whole()
    assert cluster.leader(topic) != 3
    kafka_tools.elect_leaders(cluster[1].bootstrap, "preferred", (topic, 0))
    cluster.wait_until(lambda view: leader_of(view, topic) == 3)
    assert send(cluster, topic, 5) == 5


def test_an_unclean_election_brings_back_what_has_no_replica_in_sync(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2]], {"min.insync.replicas": "1"})
    assert send(cluster, topic, 5) == 5
    cluster[2].kill()
    cluster.wait_until(lambda view: in_sync(view, topic) == {1})
    assert send(cluster, topic, 5) == 5
    cluster[1].kill()
    cluster[2].start()
    cluster.wait_until(lambda view: leader_of(view, topic) == -1)
    kafka_tools.elect_leaders(cluster[2].bootstrap, "unclean", (topic, 0))
    cluster.wait_until(lambda view: leader_of(view, topic) == 2)
    assert send(cluster, topic, 1) == 1
    cluster[1].start()
    cluster.wait_until_whole()
    assert len(read(cluster[1].bootstrap, topic, 6)) == 6  # Five that both had, and the last one.
    dirs = cluster.log_dirs()
    wait_until(lambda: not replicas.differences(dirs, whole=True), PATIENCE_S)


def test_kafka_reassign_partitions_moves_a_replica(
    cluster: BrokerCluster, topic: str, tmp_path: Path
) -> None:
    cluster.create(topic, [[1, 2]])
    assert send(cluster, topic, 500) == 500
    bootstrap = cluster.bootstrap
    throttle = ("--throttle", "50000000")
    path = kafka_tools.reassign(bootstrap, tmp_path, {(topic, 0): [3, 2]}, *throttle)
    cluster.wait_until(lambda view: view.partitions[topic, 0].replicas == (3, 2))
    wait_until(lambda: kafka_tools.reassigned(bootstrap, path), PATIENCE_S)
    cluster.wait_until(lambda view: in_sync(view, topic) == {2, 3})
    wait_until(lambda: not directories(cluster, topic)[1], PATIENCE_S)
    assert len(read(cluster[1].bootstrap, topic, 500)) == 500
    described = kafka_tools.tool(
        *(kafka_tools.CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", topic),
        bootstrap=bootstrap,
    )
    assert "throttled" not in described, described


RATE = 1_000_000
SIZE = 8_000_000


def seconds_of_copying(member: Member, topic: str) -> float:
    """How long a replica takes from a quarter of `SIZE` to all of it."""
    log = member.place.log_dir / f"{topic}-0" / f"{0:020}.log"

    def has(size: int) -> bool:
        return log.exists() and log.stat().st_size >= size

    wait_until(lambda: has(SIZE // 4), PATIENCE_S)
    began = time.monotonic()
    wait_until(lambda: has(SIZE), PATIENCE_S)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("throttled", ["leader", "follower", "reassignment", "nothing"])
def test_replicas_are_copied_at_the_rate_of_their_throttle(
    cluster: BrokerCluster, topic: str, tmp_path: Path, throttled: str
) -> None:
    """A copy of six seconds' worth takes three at least; without a throttle it takes no time."""
    bootstrap, side = cluster.bootstrap, throttled in ("leader", "follower")
    cluster.create(topic, [[1, 2] if throttled == "reassignment" else [1, 3]])
    assert send(cluster, topic, SIZE // 1000, value=bytes(1000)) == SIZE // 1000
    rate = f"{throttled}.replication.throttled.rate"
    slow = "1" if throttled == "leader" else "3"

    def alter(kind: str, name: str, *words: str) -> None:
        where = ("--entity-type", kind, "--entity-name", name)
        kafka_tools.tool(kafka_tools.CONFIGS, "--alter", *where, *words, bootstrap=bootstrap)

    if throttled == "reassignment":
        words = ("--throttle", str(RATE))
        path = kafka_tools.reassign(bootstrap, tmp_path, {(topic, 0): [3, 2]}, *words)
    else:
        if side:
            alter("brokers", slow, "--add-config", f"{rate}={RATE}")
            # Kafka ignores this config of a new topic until its next start, so it is set later.
            whose = f"{throttled}.replication.throttled.replicas=*"
            alter("topics", topic, "--add-config", whose)
        cluster[3].stop()
        cluster[3].empty_directory()
        cluster[3].begin()
    seconds = seconds_of_copying(cluster[3], topic)
    cluster.wait_until(lambda view: 3 in in_sync(view, topic))
    if throttled == "reassignment":
        wait_until(lambda: kafka_tools.reassigned(bootstrap, path), PATIENCE_S)
    elif side:
        alter("brokers", slow, "--delete-config", rate)
    if throttled == "nothing":
        assert seconds < 5
    else:
        assert 3 < seconds < 120


def test_kafka_configs_through_one_broker_are_seen_through_all(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])
    entity = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--alter", "--add-config", "retention.ms=123456789")
    kafka_tools.tool(kafka_tools.CONFIGS, *change, *entity, bootstrap=cluster[2].bootstrap)

    def is_seen(member: Member) -> bool:
        words = (*entity, "--describe")
        told = kafka_tools.tool(kafka_tools.CONFIGS, *words, bootstrap=member.bootstrap)
        return "retention.ms=123456789" in told

    for member in cluster:
        wait_until(lambda member=member: is_seen(member), PATIENCE_S)  # type: ignore[misc]


def test_kafka_metadata_quorum_says_that_there_is_none(cluster: BrokerCluster) -> None:
    words = ("describe", "--status")
    told = kafka_tools.tool(
        kafka_tools.QUORUM, *words, bootstrap=cluster.bootstrap, check=False, timeout=60
    )
    assert "UnsupportedVersionException" in told, told


def test_pykafkalog_cluster_tells_why_replicas_are_not_in_sync(
    cluster: BrokerCluster, topic: str
) -> None:
    cluster.create(topic, [[1, 2, 3]])

    def told() -> list[dict[str, object]]:
        words = ("cluster", "-b", cluster[1].bootstrap, "--partitions", topic, "--json")
        done = in_process(*words)
        assert done.returncode == 0, done.stderr
        (partition,) = json.loads(done.stdout)
        found: list[dict[str, object]] = partition["not_in_sync"]
        return found

    assert told() == []
    assert in_process("cluster", "-b", cluster[1].bootstrap, "--health").returncode == 0
    cluster[3].kill()
    # Its leader takes it out of the ISR before or after ZooKeeper ends its session.
    cluster.wait_until(lambda view: in_sync(view, topic) == {1, 2} and 3 not in view.brokers)
    assert send(cluster, topic, 40) == 40
    (missing,) = told()
    assert (missing["broker"], missing["why"]) == (3, "away")
    done = in_process("cluster", "-b", cluster[1].bootstrap, "--health")
    assert done.returncode == 1
    assert "broker 3: its broker is away" in done.stdout
    words = ("--watch", "--interval", "0.1", "--count", "2")
    shown = in_process("cluster", "-b", cluster[2].bootstrap, *words).stdout
    assert shown.count("broker 3: its broker is away") >= 2
    cluster[3].start()
    cluster.wait_until_whole()
    assert told() == []


# ---- coordinators


def test_a_group_goes_on_when_its_coordinator_has_died(
    cluster: BrokerCluster, topic: str, group: str
) -> None:
    cluster.create(topic, [[1, 2, 3], [2, 3, 1]])
    send(cluster, topic, 50, 0)
    send(cluster, topic, 50, 1)
    assert len(read(cluster.bootstrap, topic, 100, group=group, partition=None)) == 100
    admin = cluster.admin()
    told = admin.describe_consumer_groups([group])[group].result(30)
    coordinator = told.coordinator.id
    cluster[coordinator].kill()
    survivor = next(member for member in cluster.running)
    cluster.wait_for_leader((topic, 0), other_than=coordinator)
    send(cluster, topic, 30, 0)
    values = read(survivor.bootstrap, topic, 30, group=group, partition=None)
    assert values == [f"value-{number}" for number in range(30)]


def test_internal_topics_are_replicated(cluster: BrokerCluster, topic: str, group: str) -> None:
    cluster.create(topic, [[1, 2, 3]])
    send(cluster, topic, 1)
    read(cluster.bootstrap, topic, 1, group=group, partition=None)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": group, "log_level": 0}
    )
    producer.init_transactions(30)
    view = cluster.view()
    for name in ("__consumer_offsets", "__transaction_state"):
        counts = [len(each.replicas) for (of, _), each in view.partitions.items() if of == name]
        assert counts == [3] * 4, name


# ---- access


def test_kafka_acls_through_one_broker_hold_on_all(tmp_path: Path) -> None:
    """With Kafka's authorizer for ZooKeeper; the brokers themselves are super users."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:admin",
    }
    with BrokerCluster(tmp_path, KINDS, settings=settings) as cluster:
        cluster.create("guarded", [[1, 2, 3]])
        assert send(cluster, "guarded", 3) == 3
        rule = ("--deny-principal", "User:ANONYMOUS", "--operation", "Write", "--topic", "guarded")
        change = ("--add", "--force", *rule)
        kafka_tools.tool(kafka_tools.ACLS, *change, bootstrap=cluster[3].bootstrap)
        refused = {"message.timeout.ms": 3000}
        wait_until(lambda: send(cluster, "guarded", 1, **refused) == 0, PATIENCE_S)
        for member in cluster:
            listed = kafka_tools.tool(kafka_tools.ACLS, "--list", bootstrap=member.bootstrap)
            assert "operation=WRITE, permissionType=DENY" in listed, listed


# ---- under load


def test_kills_of_every_role_under_load_lose_nothing(
    cluster: BrokerCluster, tmp_path: Path
) -> None:
    with ClusterLoad(tmp_path, cluster, FEW_OVER_A_CLUSTER) as load:
        load.wait_for_progress()
        for role in ("leader", "controller", "group", "transactions"):
            victim = {
                "leader": lambda: cluster.leader("t"),
                "controller": cluster.controller,
                "group": lambda: cluster.leader("__consumer_offsets"),
                "transactions": lambda: cluster.leader("__transaction_state"),
            }[role]()
            cluster[victim].kill()
            load.wait_for_progress()
            cluster[victim].start()
            cluster.wait_until_whole()
            load.wait_for_progress()
    verdict = load.verdict()
    assert verdict.is_clean, verdict.text()
    assert verdict.committed > 100, verdict.text()
    assert verdict.batches > 300, verdict.text()
