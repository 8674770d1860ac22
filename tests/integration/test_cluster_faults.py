"""Faults of brokers and of the network between them, over a cluster; and zombies, one by one.

Bounded here; longer by PYKAFKALOG_ANOMALIES_SECONDS, from another seed by
PYKAFKALOG_ANOMALIES_SEED, both by `scripts/anomalies --cluster`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.anomalies.cluster_load import ClusterLoad
from tests.anomalies.cluster_run import ClusterPlan, ClusterRun
from tests.anomalies.workload.crowd import FEW_OVER_A_CLUSTER
from tests.support.cluster import replicas
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.disk import may_mount
from tests.support.cluster.member import Kind
from tests.support.cluster.network import ZOOKEEPER
from tests.support.either_broker import ON_APACHE
from tests.support.waiting import wait_until

SECONDS = float(os.environ.get("PYKAFKALOG_ANOMALIES_SECONDS", "90"))
SEED = int(os.environ.get("PYKAFKALOG_ANOMALIES_SEED", "1"))
KINDS = (Kind.KAFKA if ON_APACHE else Kind.OURS,) * 3
PATIENCE_S = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers with a network between them."""
    with BrokerCluster(tmp_path, KINDS, with_network=True) as cluster:
        yield cluster


def test_s_txn_7_faults_of_a_cluster_show_no_anomaly(tmp_path: Path) -> None:
    result = ClusterRun(tmp_path, ClusterPlan(seed=SEED, seconds=SECONDS, kinds=KINDS)).play()
    print(result.text())
    assert result.verdict.is_clean, result.text()
    assert result.verdict.committed > SECONDS, result.text()
    assert result.faults.total() >= 3, result.text()
    assert ON_APACHE or result.cleanings.total() >= 3, result.text()


def test_a_controller_that_slept_is_obeyed_no_more(cluster: BrokerCluster, tmp_path: Path) -> None:
    """It wakes up with requests of its old epoch in hand and a session that is over."""
    with ClusterLoad(tmp_path, cluster, FEW_OVER_A_CLUSTER) as load:
        load.wait_for_progress()
        for _ in range(2):
            before = cluster.controller()
            cluster[before].pause()
            cluster.wait_until(lambda view, before=before: view.controller not in (before, -1))  # type: ignore[misc]
            load.wait_for_progress()
            cluster[before].resume()
            cluster.wait_until_whole()
            load.wait_for_progress()
            assert cluster.controller() != before
    verdict = load.verdict()
    assert verdict.is_clean, verdict.text()


def test_a_leader_that_nobody_hears_acknowledges_nothing(
    cluster: BrokerCluster, tmp_path: Path
) -> None:
    """A client that still reaches it gets no acknowledgement, and its records are cut off."""
    cluster.create("orders", [[1, 2, 3]])
    assert cluster.network is not None
    cluster.network.isolate(1, also_from_zookeeper=True)
    acknowledged: list[bytes] = []
    # This producer knows only the zombie, which still takes itself for the leader.
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster[1].bootstrap,
            "acks": "all",
            "message.timeout.ms": 6000,
            "log_level": 0,
        }
    )
    for number in range(50):
        producer.produce(
            "orders",
            f"zombie-{number}",
            partition=0,
            on_delivery=lambda error, m: None if error else acknowledged.append(m.value()),
        )
    producer.flush(0)
    others = [cluster[2], cluster[3]]

    def is_replaced() -> bool:
        told = [member.view() for member in others]
        return all(view and view.partitions["orders", 0].leader in (2, 3) for view in told)

    wait_until(is_replaced, PATIENCE_S)
    successor = confluent_kafka.Producer(
        {"bootstrap.servers": cluster[2].bootstrap, "acks": "all", "log_level": 0}
    )
    kept: list[bytes] = []
    for number in range(50):
        successor.produce(
            "orders",
            f"kept-{number}",
            partition=0,
            on_delivery=lambda error, m: None if error else kept.append(m.value()),
        )
    successor.flush(30)
    assert len(kept) == 50
    producer.flush(10)
    assert not acknowledged
    cluster.network.heal()
    cluster.wait_until_whole()
    dirs = cluster.log_dirs()
    wait_until(lambda: not replicas.differences(dirs, whole=True), PATIENCE_S)


def test_a_session_that_ends_is_begun_anew_without_a_restart(cluster: BrokerCluster) -> None:
    cluster.create("orders", [[2, 3, 1]])
    assert cluster.network is not None
    for broker in (2, cluster.controller()):
        cluster.network.cut(broker, ZOOKEEPER)
        others = [member for member in cluster if member.broker_id != broker]

        def is_away(broker: int = broker, others: list = others) -> bool:  # type: ignore[type-arg]
            told = [member.view() for member in others]
            return all(view is not None and broker not in view.brokers for view in told)

        wait_until(is_away, PATIENCE_S)
        cluster.network.heal()
        cluster.wait_until_whole()
        assert all(member.running for member in cluster)


@pytest.mark.skipif(not may_mount(), reason="only root may mount")
def test_a_broker_with_full_disks_hands_on_what_it_leads_and_comes_back(tmp_path: Path) -> None:
    """A broker whose first log directory is full uses the second; with both full, it ends."""
    partitions = range(4)
    with BrokerCluster(tmp_path, KINDS, with_disks=True) as cluster:
        cluster.create("orders", [[1, 2, 3] for _ in partitions])

        def write() -> None:
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
            )
            for partition in partitions:
                producer.produce("orders", b"." * 5000, partition=partition)
            assert producer.flush(PATIENCE_S) == 0

        def led_by_it() -> int:
            told = cluster[2].view()
            assert told is not None
            return [told.partitions["orders", each].leader for each in partitions].count(1)

        write()
        disks = cluster.disks[1]
        disks[0].fill()
        write()
        assert cluster[1].running
        assert led_by_it() == len(partitions) / len(disks)
        disks[1].fill()
        write()
        wait_until(lambda: not cluster[1].running, PATIENCE_S)
        assert led_by_it() == 0
        for disk in disks:
            disk.give_room()
        cluster[1].start()
        cluster.wait_until_whole()
        dirs = cluster.log_dirs()
        wait_until(lambda: not replicas.differences(dirs, whole=True), PATIENCE_S)
        assert replicas.compared_batches(dirs) == 3 * 3 * len(partitions)
