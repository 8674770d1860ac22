"""A crowd over a cluster: begins, goes on whatever happens to the brokers, is judged at the end.

    with ClusterLoad(tmp_path, cluster, FEW_OVER_A_CLUSTER, seed=1) as load:
        cluster[1].kill()
        load.wait_for_progress()
        cluster[1].start()
    verdict = load.verdict()
    assert verdict.is_clean, verdict.text()

The verdict is of the checker over the history of all clients, and of `replicas`: the copies of each
partition are the same bytes, or say the same if brokers clean them (`BrokerCluster.compacted`).
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import confluent_kafka

from tests.anomalies.checker import check
from tests.anomalies.client_processes import TICK_S, ClientProcesses
from tests.anomalies.final_read import read_everything
from tests.anomalies.findings import Report
from tests.anomalies.history import SUFFIX, read_history
from tests.anomalies.resent import resent
from tests.anomalies.workload.clients import PATIENCE_S
from tests.anomalies.workload.crowd import TOPICS, Member
from tests.support.cluster import replicas
from tests.support.cluster.broker_cluster import BrokerCluster, rotated

PROGRESS_S: Final = 60.0
REST_S: Final = 30.0
_ANSWERED: Final = b'"f":"txn","type":"ok"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a load."""

    report: Report
    differences: list[str]
    """A line for each difference between replicas of a partition."""
    batches: int
    """The number of batches that were compared."""
    directory: Path

    @property
    def is_clean(self) -> bool:
        """Whether there is no anomaly and no difference."""
        return self.report.is_clean and not self.differences

    @property
    def committed(self) -> int:
        """Transactions, and records of idempotent producers, that were acknowledged."""
        return self.report.counts["committed"]

    def text(self) -> str:
        """Return the verdict for a person to read."""
        return "\n".join(
            (
                f"history in {self.directory / 'history'}",
                *(f"replicas differ: {each}" for each in self.differences),
                f"{self.batches} batches compared",
                self.report.text(),
            )
        )


class ClusterLoad:
    """Makes the topics of the workload, and keeps all clients alive in a thread."""

    def __init__(
        self, directory: Path, cluster: BrokerCluster, crowd: Sequence[Member], *, seed: int = 1
    ) -> None:
        self.directory = directory
        self.history = directory / "history"
        self.history.mkdir(parents=True)
        self._cluster = cluster
        self.clients = ClientProcesses(directory, self.history, crowd, cluster.bootstrap, seed)
        self._keeper = threading.Thread(target=self._keep, name="crowd", daemon=True)
        self._over = threading.Event()
        self._verdict: Verdict | None = None

    def __enter__(self) -> "ClusterLoad":
        there = self._cluster.view().partitions
        for topic, count in TOPICS.items():
            if (topic, 0) not in there:
                self._cluster.create(topic, rotated(sorted(self._cluster.members), count))
        self._keeper.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._keeper.join()
        if kind is None:
            self.clients.stop()
        self.clients.close()

    def answered(self) -> int:
        """Return the number of transactions and records that were acknowledged so far."""
        return sum(path.read_bytes().count(_ANSWERED) for path in self._files())

    def wait_for_progress(self, count: int = 20, patience_s: float = PROGRESS_S) -> float:
        """Wait until so many more were acknowledged; return the seconds that took."""
        began, before = time.monotonic(), self.answered()
        while self.answered() < before + count:
            if time.monotonic() - began > patience_s:
                raise AssertionError(
                    f"{self.answered() - before} of {count} acknowledged in {patience_s} s\n"
                    f"{self.output()}\n{self._cluster.outputs()}"
                )
            time.sleep(TICK_S)
        return time.monotonic() - began

    def output(self) -> str:
        """Return the last lines that clients printed."""
        return (self.directory / "clients.out").read_text(errors="replace")[-2000:]

    def verdict(self) -> Verdict:
        """End open transactions, read everything, judge. All members must run."""
        self._cluster.wait_until_whole()
        for member in self.clients.transactional:
            take_over(self._cluster.bootstrap, member.name)
        found = self.replica_differences()
        one, *_ = self._cluster.log_dirs().values()
        read_everything(self._cluster.bootstrap, self.history, resent=resent(one))
        return Verdict(
            report=check(read_history(self.history)),
            differences=found,
            batches=replicas.compared_batches(self._cluster.log_dirs()),
            directory=self.directory,
        )

    def replica_differences(self, *, whole: bool = True) -> list[str]:
        """Wait until replicas are the same, as they are soon when nobody writes.

        Returns a line for each difference that stays. `whole=False` compares replicas up to the end
        that all have, for a look while clients write.
        """
        deadline = time.monotonic() + REST_S
        while True:
            found = replicas.differences(
                self._cluster.log_dirs(), whole=whole, compacted=self._cluster.compacted
            )
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.5)

    def _keep(self) -> None:
        while not self._over.wait(TICK_S):
            self.clients.keep_alive()

    def _files(self) -> list[Path]:
        return sorted(self.history.glob(f"*{SUFFIX}"))


def take_over(bootstrap: str, transactional_id: str) -> None:
    """Take over the id: an open transaction is aborted, a decided one is carried out."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S * 2)
