"""The proof of the runs over a cluster: sabotaged brokers are found out, real ones are not.

One or two faults of the right kind find `watermark` and `isr`. Faults seldom make a history in
which a build without fencing loses records, and a cluster without truncation may not become whole
again after a random fault, so the tests make those histories by hand.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from tests.anomalies.cluster_broker import command
from tests.anomalies.cluster_run import OURS, ClusterPlan, ClusterResult, ClusterRun
from tests.anomalies.faults.cluster_nemesis import ClusterFaults
from tests.anomalies.findings import Anomaly
from tests.support.cluster import replicas
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.network import ZOOKEEPER, Network
from tests.support.cluster.view import ClusterView
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ONE_FAULT_S = 12.0
CONTROLLER, FORMER, SUCCESSOR = 1, 2, 3
ORDERS = ("orders", 0)
RECORDS = 50
PATIENCE_S = 60.0


class WaitUntilTold(Protocol):
    """Waits until `what` holds in the view of a member that is not cut off."""

    def __call__(self, what: Callable[[ClusterView], bool], member: int = CONTROLLER) -> None: ...


def played(directory: Path, sabotage: str | None, fault: str) -> ClusterResult:
    """A run with one or two faults of a kind."""
    plan = ClusterPlan(
        seed=1,
        seconds=ONE_FAULT_S,
        faults=ClusterFaults(weights={fault: 1}),
        client_faults={"nothing": 1},
        own={"command": command(sabotage)},
    )
    return ClusterRun(directory, plan).play()


def test_a_leader_that_waits_for_no_follower_loses_what_it_acknowledged(tmp_path: Path) -> None:
    result = played(tmp_path, "watermark", "cut off")
    assert Anomaly.LOST_WRITE in result.verdict.report.kinds, result.text()


def test_an_isr_that_is_never_shrunk_stops_writes(tmp_path: Path) -> None:
    result = played(tmp_path, "isr", "lag")
    assert result.findings, result.text()


def test_brokers_that_are_killed_all_at_once_lose_nothing(tmp_path: Path) -> None:
    result = played(tmp_path, None, "kill all")
    assert result.is_clean, result.text()
    assert result.faults["kill all brokers"], result.text()


@pytest.mark.parametrize("sabotage", ["fencing", None])
def test_a_former_leader_takes_the_isr_for_its_own_unless_it_is_fenced(
    tmp_path: Path, sabotage: str | None
) -> None:
    """The former leader asks for an ISR of itself alone, and then its successor dies."""
    with orders(tmp_path, sabotage) as (cluster, network, wait_until_told):
        witness = cluster[CONTROLLER]
        network.isolate(FORMER, also_from_zookeeper=True)
        # Others lack this record, so they lag.
        assert write(cluster[FORMER].bootstrap, 1, patience_s=5) == 0
        wait_until_told(lambda view: view.partitions[ORDERS].leader == SUCCESSOR, SUCCESSOR)
        assert write(cluster[SUCCESSOR].bootstrap, RECORDS) == RECORDS
        network.mend(FORMER, CONTROLLER)
        if sabotage:
            wait_until_told(lambda view: view.partitions[ORDERS].isr == (FORMER,))
        else:
            refusal = f"Ignoring AlterPartition of broker {FORMER}"
            wait_until(lambda: refusal in witness.output(), PATIENCE_S)
        network.mend(FORMER, ZOOKEEPER)
        wait_until_told(lambda view: FORMER in view.brokers)
        cluster[SUCCESSOR].kill()
        leader = FORMER if sabotage else CONTROLLER
        wait_until_told(lambda view: view.partitions[ORDERS].leader == leader)
        network.heal()
        cluster[SUCCESSOR].start()
        cluster.wait_until_whole()
        assert end(cluster.bootstrap) == (1 if sabotage else RECORDS)


@pytest.mark.parametrize("sabotage", ["truncation", None])
def test_a_former_leader_has_other_records_unless_it_truncates(
    tmp_path: Path, sabotage: str | None
) -> None:
    """The former leader has records that nobody else has, and its successor writes more."""
    with orders(tmp_path, sabotage) as (cluster, network, wait_until_told):
        network.isolate(FORMER, also_from_zookeeper=True)
        assert write(cluster[FORMER].bootstrap, RECORDS, acks=1) == RECORDS
        wait_until_told(lambda view: view.partitions[ORDERS].leader == SUCCESSOR, SUCCESSOR)
        assert write(cluster[SUCCESSOR].bootstrap, 2 * RECORDS) == 2 * RECORDS
        network.heal()
        cluster.wait_until_whole()
        assert end(cluster.bootstrap) == 2 * RECORDS
        assert bool(replicas.differences(cluster.log_dirs())) == bool(sabotage)


@contextmanager
def orders(
    directory: Path, sabotage: str | None
) -> Iterator[tuple[BrokerCluster, Network, WaitUntilTold]]:
    """A cluster with a topic of one partition that `FORMER` leads, and what waits for a view."""
    own = {"command": command(sabotage)}
    with BrokerCluster(directory, OURS, own=own, with_network=True) as cluster:
        assert cluster.controller() == CONTROLLER
        assert cluster.network is not None
        cluster.create(ORDERS[0], [[FORMER, SUCCESSOR, CONTROLLER]])

        def wait_until_told(what: Callable[[ClusterView], bool], member: int = CONTROLLER) -> None:
            asked = cluster[member]
            wait_until(lambda: (told := asked.view()) is not None and what(told), PATIENCE_S)

        yield cluster, cluster.network, wait_until_told


def write(
    bootstrap: str, count: int, *, acks: int | str = "all", patience_s: float = PATIENCE_S
) -> int:
    """Write records, each alone in its batch, to the leader that this broker knows of.

    A leader that is cut off appends them and acknowledges none. Returns the number of records that
    were acknowledged in time.
    """
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "acks": acks, "batch.num.messages": 1, "log_level": 0}
    )
    for _ in range(count):
        producer.produce(ORDERS[0], b"", partition=ORDERS[1])
    return count - producer.flush(patience_s)


def end(bootstrap: str) -> int:
    """Return the high watermark."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(*ORDERS), PATIENCE_S)[1])
    finally:
        consumer.close()
