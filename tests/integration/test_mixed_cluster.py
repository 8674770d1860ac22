"""Apache Kafka 3.9 and this broker in one cluster: every role on each side, and replacement."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import confluent_kafka
import pytest

from tests.anomalies.cluster_load import ClusterLoad
from tests.anomalies.workload.crowd import FEW_OVER_A_CLUSTER, OVER_A_CLUSTER
from tests.support.cluster import replicas
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.member import Kind
from tests.support.waiting import wait_until

KAFKA, OURS = Kind.KAFKA, Kind.OURS
ROLES = ("controller", "leader", "follower", "group coordinator", "transaction coordinator")


class RolesTaken:
    """The roles that each kind of broker has had."""

    def __init__(self, cluster: BrokerCluster) -> None:
        self._cluster = cluster
        self.seen: set[tuple[str, Kind]] = set()

    def look(self) -> None:
        """Note the roles that brokers have now."""
        view = self._cluster.view()
        self._note("controller", view.controller)
        for (topic, _), partition in view.partitions.items():
            role = {
                "t": "leader",
                "__consumer_offsets": "group coordinator",
                "__transaction_state": "transaction coordinator",
            }.get(topic)
            if role is not None:
                self._note(role, partition.leader)
                for broker in set(partition.isr) - {partition.leader}:
                    self._note("follower", broker)

    def missing(self) -> set[tuple[str, Kind]]:
        """Roles that a side has not had."""
        kinds = {member.kind for member in self._cluster}
        return {(role, kind) for role in ROLES for kind in kinds} - self.seen

    def _note(self, role: str, broker: int) -> None:
        if broker in self._cluster.members:
            self.seen.add((role, self._cluster[broker].kind))


def test_a_topic_is_replicated_between_both_kinds(tmp_path: Path) -> None:
    """Each broker leads, and the other's copy is the same bytes; a client finds both."""
    with BrokerCluster(tmp_path, [KAFKA, OURS]) as cluster:
        cluster.create("orders", [[1, 2], [2, 1]])
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
        )
        for number in range(200):
            producer.produce("orders", f"value-{number}", partition=number % 2)
        assert producer.flush(30) == 0
        dirs = cluster.log_dirs()
        wait_until(lambda: not replicas.differences(dirs, whole=True), 30)
        assert replicas.compared_batches(dirs) >= 4
        for broker, survivor in ((1, 2), (2, 1)):
            cluster[broker].stop()
            cluster.wait_for_leader(("orders", broker - 1), other_than=broker)
            assert cluster.view().partitions["orders", broker - 1].leader == survivor
            cluster[broker].start()
            cluster.wait_until_whole()


@pytest.fixture(
    params=[(KAFKA, OURS, OURS), (OURS, KAFKA, KAFKA)], ids=("one of Kafka", "two of Kafka")
)
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerCluster]:
    """A cluster of both kinds."""
    kinds: Sequence[Kind] = request.param
    with BrokerCluster(tmp_path, kinds) as cluster:
        yield cluster


@pytest.mark.slow
def test_each_side_takes_every_role_under_load(mixed: BrokerCluster, tmp_path: Path) -> None:
    """Each broker is stopped cleanly, and then killed, until both sides have had all roles."""
    taken = RolesTaken(mixed)
    with ClusterLoad(tmp_path, mixed, OVER_A_CLUSTER) as load:
        load.wait_for_progress()
        taken.look()
        for round_of in ("stop", "kill"):
            for broker in (mixed.controller(), *mixed.members):
                member = mixed[broker]
                member.stop() if round_of == "stop" else member.kill()
                load.wait_for_progress()
                taken.look()
                member.start()
                mixed.wait_until_whole()
                load.wait_for_progress()
                taken.look()
    verdict = load.verdict()
    assert verdict.is_clean, verdict.text()
    assert not taken.missing(), taken.missing()
    assert verdict.committed > 200, verdict.text()


@pytest.mark.slow
def test_a_live_kafka_cluster_is_replaced_node_by_node_and_back(tmp_path: Path) -> None:
    """Directories stay; no acknowledged record is lost, doubled or reordered on the way."""
    with BrokerCluster(tmp_path, [KAFKA] * 3) as cluster:
        with ClusterLoad(tmp_path, cluster, OVER_A_CLUSTER) as load:
            load.wait_for_progress()
            for kind in (OURS, KAFKA):
                for broker in cluster.members:
                    cluster.replace(broker, kind)
                    cluster.wait_until_whole()
                    load.wait_for_progress()
                assert load.replica_differences(whole=False) == []
        verdict = load.verdict()
        assert verdict.is_clean, verdict.text()
        assert verdict.committed > 200, verdict.text()


@pytest.mark.slow
def test_a_node_is_replaced_on_an_empty_disk(tmp_path: Path) -> None:
    """The other way to replace a node: it copies all records again."""
    with BrokerCluster(tmp_path, [KAFKA] * 3) as cluster:
        with ClusterLoad(tmp_path, cluster, FEW_OVER_A_CLUSTER) as load:
            load.wait_for_progress()
            cluster.replace(2, OURS, emptied=True)
            cluster.wait_until_whole()
            cluster.replace(3, OURS, emptied=True)
            cluster.wait_until_whole()
            load.wait_for_progress()
        verdict = load.verdict()
        assert verdict.is_clean, verdict.text()
