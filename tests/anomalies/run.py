"""One run: a broker, the proxy before it, the crowd, faults for a time, a final read, the checker.

    result = Run(directory, RunPlan(seed=1, seconds=60)).play()

All that is drawn is drawn from the seed. The machine decides which request comes first and how far
a process was when it was killed, so a seed repeats the faults and not the history, which is kept in
`directory/history`.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tests.anomalies.checker import check
from tests.anomalies.client_processes import TICK_S, ClientProcesses
from tests.anomalies.faults.nemesis import Nemesis, NemesisPlan
from tests.anomalies.faults.plan import Fault, FaultPlan
from tests.anomalies.faults.proxy import HOST, FaultProxy
from tests.anomalies.faults.worn_ids import wear
from tests.anomalies.final_read import read_everything
from tests.anomalies.findings import Report
from tests.anomalies.history import read_history
from tests.anomalies.workload.crowd import CROWD, TOPICS, Member
from tests.anomalies.workload.raw import RawProducer, SocketLine
from tests.anomalies.workload.roles import blocking
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess

LATE_S: Final = 12.0
"""The time that late requests may still take when the clients are done."""
SETTINGS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "auto.create.topics.enable": "false",
}
OWN_SETTINGS: Final[Mapping[str, str]] = {
    "log.segment.bytes": "16384",  # Transactions that span segments, and their indexes.
}
"""Settings that Apache Kafka does not allow."""
DEFAULT_FAULTS: Final = FaultPlan(
    chances={
        Fault.DROP_ANSWER: 0.01,
        Fault.LATE: 0.01,
        Fault.REPLAY: 0.03,
        Fault.DELAY: 0.01,
        Fault.CUT: 0.003,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of a run."""

    seed: int
    seconds: float
    crowd: Sequence[Member] = CROWD
    faults: FaultPlan = DEFAULT_FAULTS
    nemesis: NemesisPlan = field(default_factory=NemesisPlan)
    worn: bool = True
    """Transactional ids are near the end of their epochs (`worn_ids`)."""
    apache: bool = False
    """Whether the broker is Apache Kafka: a failure there says nothing about this broker."""
    broker_command: Sequence[str] | None = None
    """For brokers that lack something (`sabotage`)."""
    to_the_end: bool = True
    """End all transactions and read everything; a broker that lacks something may not allow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a run."""

    seed: int
    report: Report
    faults: Counter[str]
    """The number of faults of each kind."""
    repeats: Counter[str]
    """The broker's answers to late and repeated requests."""
    incarnations: int
    directory: Path

    def text(self) -> str:
        """Return the result for a person to read."""
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        repeats = ", ".join(f"{what} {count}" for what, count in sorted(self.repeats.items()))
        return "\n".join(
            (
                f"seed {self.seed}, history in {self.directory / 'history'}",
                f"client processes: {self.incarnations}",
                f"faults: {faults or 'none'}",
                f"late and repeated requests: {repeats or 'none'}",
                self.report.text(),
            )
        )


class Run:
    """Sets all up, lets it go on for a time, and judges; the `Stage` of the nemesis."""

    def __init__(self, directory: Path, plan: RunPlan) -> None:
        self.directory = directory
        self.plan = plan
        self.history = directory / "history"
        self.history.mkdir(parents=True)
        self.proxy = FaultProxy(Random(f"{plan.seed} proxy"))
        self._bootstrap = f"{HOST}:{self.proxy.port}"
        self.broker = self._made_broker()
        self.clients = ClientProcesses(
            directory, self.history, plan.crowd, self._bootstrap, plan.seed
        )
        self.nemesis = Nemesis(self, Random(f"{plan.seed} nemesis"), plan.nemesis)
        self._worn: dict[str, int] = {}

    def play(self, watch: Callable[["Run", float], bool] = lambda run, left: True) -> RunResult:
        """The whole run. `watch` is called often, with the seconds left; False ends it early."""
        plan = self.plan
        with self.proxy:
            try:
                self.start_broker()
                self._make_topics()
                if plan.worn:
                    self._wear_ids()
                self.proxy.plan = plan.faults
                deadline = time.monotonic() + plan.seconds
                while (left := deadline - time.monotonic()) > 0 and watch(self, left):
                    self.clients.keep_alive()
                    self.nemesis.step()
                    time.sleep(TICK_S)
                if plan.to_the_end:
                    self._calm_down()
                    self._end_open_transactions()
                    read_everything(self.broker.bootstrap, self.history)
            finally:
                self.clients.close()
                self.broker.kill()
        return RunResult(
            seed=plan.seed,
            report=check(read_history(self.history)),
            faults=self.proxy.counts + self.nemesis.counts,
            repeats=self.proxy.repeats_answered,
            incarnations=self.clients.incarnations,
            directory=self.directory,
        )

    # ---- the broker

    def _made_broker(self) -> BrokerProcess | ApacheKafka:
        settings = {**SETTINGS, "advertised.listeners": f"PLAINTEXT://{self._bootstrap}"}
        where = self.directory / "broker"
        if self.plan.apache:
            return ApacheKafka(where, settings)
        return BrokerProcess(where, settings | OWN_SETTINGS, command=self.plan.broker_command)

    def start_broker(self) -> None:
        """Start it, for the first time or again."""
        self.broker.start()
        self.proxy.broker_port = self.broker.port

    def drop_connections(self, share: float) -> None:
        """Close this share of all connections through the proxy."""
        self.proxy.hang_up(share)

    def _make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        topics = [NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(30)

    def _wear_ids(self) -> None:
        self._worn = wear(
            self.broker.port,
            int(SETTINGS["transaction.state.log.num.partitions"]),
            {member.name: member.library for member in self.plan.crowd if member.has_transactions},
            Random(f"{self.plan.seed} worn"),
        )
        self.broker.stop()
        self.start_broker()

    # ---- the end

    def _calm_down(self) -> None:
        self.proxy.calm()
        self.nemesis.finish()
        self.clients.stop()
        deadline = time.monotonic() + LATE_S
        while self.proxy.has_late_requests and time.monotonic() < deadline:
            time.sleep(TICK_S)

    def _end_open_transactions(self) -> None:
        """Take over each id: an open transaction is aborted, a decided one is carried out."""
        for member in self.plan.crowd:
            if member.has_transactions:
                line = SocketLine(self.broker.port)
                producer = blocking(RawProducer(line, member.name).open())
                line.close()
                if self._worn.get(member.name, producer.producer_id) != producer.producer_id:
                    self.nemesis.counts["producer id used up"] += 1
