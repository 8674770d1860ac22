"""One run over a cluster: brokers of any kind, a crowd, faults for a time, and the verdict.

    result = ClusterRun(directory, ClusterPlan(seed=1, seconds=60, kinds=OURS)).play()

The seed draws the faults; what the machine decides it does not (see `run`).
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.anomalies.client_processes import TICK_S
from tests.anomalies.cluster_load import ClusterLoad, Verdict
from tests.anomalies.faults.cluster_nemesis import ClusterFaults, ClusterNemesis
from tests.anomalies.workload.crowd import FEW_OVER_A_CLUSTER, Member
from tests.support.cluster.broker_cluster import CLEANING, BrokerCluster
from tests.support.cluster.disk import may_mount
from tests.support.cluster.member import Kind

OURS: Final = (Kind.OURS,) * 3
KAFKA: Final = (Kind.KAFKA,) * 3
CLIENT_FAULTS: Final[Mapping[str, float]] = {"nothing": 20, "kill client": 1, "zombie": 1}
"""The weight of each fault; one is drawn at each second."""
_CLEANED: Final = re.compile(rb"cleaned log (\S+)-\d+ ")
"""The line of a broker of this project. Apache Kafka's logging in tests leaves its own out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The plan of a run."""

    seed: int
    seconds: float
    kinds: Sequence[Kind] = OURS
    crowd: Sequence[Member] = FEW_OVER_A_CLUSTER
    faults: ClusterFaults = field(default_factory=ClusterFaults)
    client_faults: Mapping[str, float] = field(default_factory=lambda: CLIENT_FAULTS)
    with_network: bool = True
    with_disks: bool = field(default_factory=may_mount)
    zookeepers: int = 1
    settings: Mapping[str, str] = field(default_factory=lambda: CLEANING)
    own: Mapping[str, Any] = field(default_factory=dict)
    """More arguments of the members, such as the command of `cluster_broker`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """The outcome of a run."""

    seed: int
    verdict: Verdict
    faults: Counter[str]
    findings: Sequence[str]
    """A line for each fault during which the other brokers acknowledged no write."""
    told: Sequence[str]
    """A line for each event, with its time."""
    slowest_s: float
    """The longest time from the end of a fault to all replicas in sync."""
    cleanings: Counter[str]
    """The number of cleanings by brokers of this project, by topic."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return self.verdict.is_clean and not self.findings

    def text(self) -> str:
        """Return the result for a person to read."""
        faults, cleanings = _listed(self.faults), _listed(self.cleanings)
        return "\n".join(
            (
                f"seed {self.seed}",
                *self.told,
                *self.findings,
                f"faults: {faults or 'none'}; slowest healing {self.slowest_s:.1f} s",
                f"cleanings: {cleanings or 'none'}",
                self.verdict.text(),
            )
        )


class ClusterRun:
    """Sets all up, lets it go on for a time, and judges."""

    def __init__(self, directory: Path, plan: ClusterPlan) -> None:
        self.directory = directory
        self.plan = plan
        self._random = Random(f"{plan.seed} clients")
        self._counts: Counter[str] = Counter()

    def play(
        self, watch: Callable[[ClusterLoad, float], bool] = lambda load, left: True
    ) -> ClusterResult:
        """The whole run. `watch` is called often, with the seconds left; False ends it early."""
        plan = self.plan
        cluster = BrokerCluster(
            self.directory,
            plan.kinds,
            settings=plan.settings,
            own=plan.own,
            with_network=plan.with_network,
            with_disks=plan.with_disks,
            zookeepers=plan.zookeepers,
        )
        with cluster:
            random = Random(f"{plan.seed} nemesis")
            with ClusterLoad(self.directory, cluster, plan.crowd, seed=plan.seed) as load:
                load.wait_for_progress()
                nemesis = ClusterNemesis(cluster, random, plan.faults)
                deadline = time.monotonic() + plan.seconds
                next_client_fault = time.monotonic() + 1
                while (left := deadline - time.monotonic()) > 0 and watch(load, left):
                    nemesis.step()
                    if time.monotonic() > next_client_fault:
                        next_client_fault += 1
                        self._trouble_a_client(load)
                    time.sleep(TICK_S)
                nemesis.finish()
                load.wait_for_progress()
            judging_since = time.monotonic()
            verdict = load.verdict()
            judged_s = time.monotonic() - judging_since
            return ClusterResult(
                seed=plan.seed,
                verdict=verdict,
                faults=nemesis.counts + self._counts,
                findings=nemesis.findings,
                told=[*nemesis.told, f"judged within {judged_s:.1f} s"],
                slowest_s=nemesis.slowest_s,
                cleanings=Counter(
                    topic.decode()
                    for member in cluster
                    for topic in _CLEANED.findall(member.output_file.read_bytes())
                ),
            )

    def _trouble_a_client(self, load: ClusterLoad) -> None:
        kinds, weights = zip(*self.plan.client_faults.items(), strict=True)
        kind = self._random.choices(kinds, weights)[0]
        name = load.clients.pick(self._random, transactional=kind == "zombie")
        if name is None or kind == "nothing":
            return
        self._counts[kind] += 1
        if kind == "kill client":
            load.clients.kill(name)
        else:  # A successor begins beside it, and both go on: one of them is fenced.
            load.clients.replace(name)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
