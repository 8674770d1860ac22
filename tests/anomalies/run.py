"""One run: a broker, the proxy before it, the crowd, faults for a time, a final read, the checker.

    result = Run(directory, RunPlan(seed=1, seconds=60)).play()

Everything drawn is drawn from the seed. What the machine decides (which request comes first, how
far a process was when it was killed) is not, so a seed repeats the faults and not the history; the
history is kept in `directory/history`.
"""

import signal
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
from tests.anomalies.faults.proxy import FaultProxy
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
"""How long late requests may be on their way when the clients are done."""
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
"""What Apache Kafka does not allow."""
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
    """What is to happen."""

    seed: int
    seconds: float
    crowd: Sequence[Member] = CROWD
    faults: FaultPlan = DEFAULT_FAULTS
    nemesis: NemesisPlan = field(default_factory=NemesisPlan)
    worn: bool = True
    """Transactional ids are near the end of their epochs (`worn_ids`)."""
    apache: bool = False
    """On Apache Kafka: what it does not pass says nothing about this broker."""
    broker_command: Sequence[str] | None = None
    """For brokers that lack something (`sabotage`)."""
    to_the_end: bool = True
    """End all transactions and read everything; a broker that lacks something may not allow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of it."""

    seed: int
    report: Report
    faults: Counter[str]
    """Faults that were done, by kind."""
    repeats: Counter[str]
    """What the broker answered to late and repeated requests."""
    incarnations: int
    directory: Path

    def text(self) -> str:
        """For a person."""
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
        self.broker: BrokerProcess | ApacheKafka | None = None
        self.nemesis = Nemesis(self, Random(f"{plan.seed} nemesis"), plan.nemesis)
        self.clients: ClientProcesses | None = None
        self._worn: dict[str, int] = {}

    def play(self, watch: Callable[["Run", float], bool] = lambda run, left: True) -> RunResult:
        """The whole run. `watch` is called often, with the seconds left; False ends it early."""
        plan = self.plan
        with self.proxy:
            settings = {
                **SETTINGS,
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.proxy.port}",
            }
            where = self.directory / "broker"
            if plan.apache:
                self.broker = ApacheKafka(where, settings)
            else:
                self.broker = BrokerProcess(
                    where, settings | OWN_SETTINGS, command=plan.broker_command
                )
            try:
                self.start_broker()
                self._make_topics()
                self.clients = ClientProcesses(
                    self.directory,
                    self.history,
                    plan.crowd,
                    f"127.0.0.1:{self.proxy.port}",
                    plan.seed,
                )
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
                    read_everything(f"127.0.0.1:{self.broker.port}", self.history)
            finally:
                if self.clients is not None:
                    self.clients.close()
                self.broker.kill()
        return RunResult(
            seed=plan.seed,
            report=check(read_history(self.history)),
            faults=self.proxy.counts + self.nemesis.counts,
            repeats=self.proxy.repeats_answered,
            incarnations=self.incarnations,
            directory=self.directory,
        )

    @property
    def incarnations(self) -> int:
        """How many client processes there were so far."""
        return 0 if self.clients is None else self.clients.incarnations

    # ---- the broker

    def start_broker(self) -> None:
        """First or again."""
        assert self.broker is not None
        self.broker.start()
        self.proxy.broker_port = self.broker.port

    def kill_broker(self) -> None:
        """-9."""
        assert self.broker is not None
        self.broker.kill()

    def stop_broker(self) -> None:
        """SIGTERM."""
        assert self.broker is not None
        self.broker.stop()

    def pause_broker(self) -> None:
        """SIGSTOP."""
        assert self.broker is not None and self.broker.process is not None
        self.broker.process.send_signal(signal.SIGSTOP)

    def resume_broker(self) -> None:
        """SIGCONT."""
        assert self.broker is not None and self.broker.process is not None
        self.broker.process.send_signal(signal.SIGCONT)

    def _make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.proxy.port}"})
        topics = [NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(30)

    def _wear_ids(self) -> None:
        assert self.broker is not None
        self._worn = wear(
            self.broker.port,
            int(SETTINGS["transaction.state.log.num.partitions"]),
            {member.name: member.library for member in self.plan.crowd if member.has_transactions},
            Random(f"{self.plan.seed} worn"),
        )
        self.stop_broker()
        self.start_broker()

    # ---- clients

    def pick_client(self, random: Random, *, transactional: bool) -> str | None:
        """One that runs; None if there is none."""
        assert self.clients is not None
        return self.clients.pick(random, transactional=transactional)

    def kill_client(self, name: str) -> None:
        """-9; a new one follows."""
        assert self.clients is not None
        self.clients.kill(name)

    def pause_client(self, name: str) -> int | None:
        """SIGSTOP; its process id."""
        assert self.clients is not None
        return self.clients.pause(name)

    def resume_process(self, pid: int) -> None:
        """SIGCONT, zombie or not."""
        assert self.clients is not None
        self.clients.resume(pid)

    def replace_client(self, name: str) -> None:
        """A new incarnation while the last one is still there."""
        assert self.clients is not None
        self.clients.replace(name)

    def drop_connections(self, share: float) -> None:
        """By the proxy."""
        self.proxy.hang_up(share)

    # ---- the end

    def _calm_down(self) -> None:
        self.proxy.calm()
        self.nemesis.finish()
        assert self.clients is not None
        self.clients.stop()
        deadline = time.monotonic() + LATE_S
        while self.proxy.has_late_requests and time.monotonic() < deadline:
            time.sleep(TICK_S)

    def _end_open_transactions(self) -> None:
        """A new owner of each id: what is open is aborted, what is decided is carried out."""
        assert self.broker is not None
        for member in self.plan.crowd:
            if member.has_transactions:
                line = SocketLine(self.broker.port)
                producer = blocking(RawProducer(line, member.name).open())
                line.close()
                if self._worn.get(member.name, producer.producer_id) != producer.producer_id:
                    self.nemesis.counts["producer id used up"] += 1
