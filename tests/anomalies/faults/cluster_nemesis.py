"""Faults of a cluster's brokers, one at a time: drawn from a seed, ended, and waited out.

    kill …            -9, and a start a little later
    stop …            SIGTERM, and a start
    kill all          -9 for every broker at once, and a start of all, one a little after the other
    pause …           SIGSTOP, for less than a session with ZooKeeper lasts
    freeze …          SIGSTOP for longer: others are elected, and what wakes up is a zombie
    mute …            the others' requests reach it, its answers do not come back
    cut one way …     it reaches nobody, and everybody reaches it
    cut …             it and one other do not hear each other
    isolate …         it hears no other broker, but ZooKeeper
    expire …          it hears the brokers, and not ZooKeeper until its session is over
    cut off …         it hears nobody
    lag …             isolated for longer than a replica may lag; never the controller, without
                      which no ISR changes
    full disk …       one or both of its log directories are full; it is started again when there is
                      room, and sometimes before
    clock …           its wall clock jumps, by minutes or hours, and later back
    zookeeper: …      a server of the ensemble is killed or stands still, the leader or a follower

Each meets a broker that has a role: leader, controller, a coordinator, or any. Those that the
cluster has no means for (a network, disks, clocks, an ensemble) are left out. While one lasts long
the others must take writes: what they did not is in `findings`. The next begins when every replica
is in sync again (one of three may fail at a time, or all at once), which is part of what is tested.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import confluent_kafka

from tests.support.cluster.broker_cluster import BrokerCluster, rotated
from tests.support.cluster.network import ZOOKEEPER, Network
from tests.support.cluster.view import ClusterView

SHORT_S: Final = (0.3, 3.0)
LONG_S: Final = (8.0, 12.0)
"""Longer than the session timeout of `broker_cluster.SETTINGS`."""
HEALING_S: Final = 90.0

ROLES: Final = ("leader", "controller", "group coordinator", "transaction coordinator", "any")
WEIGHTS: Final[Mapping[str, float]] = {
    "kill": 3,
    "stop": 1,
    "kill all": 1,
    "pause": 1,
    "freeze": 2,
    "mute": 1,
    "cut one way": 1.5,
    "cut": 1.5,
    "isolate": 1.5,
    "expire": 2,
    "cut off": 2,
    "lag": 1.5,
    "full disk": 2,
    "clock": 2,
    "zookeeper: kill": 2,
    "zookeeper: pause": 1.5,
}
_OF_NETWORK: Final = frozenset(
    ("mute", "cut one way", "cut", "isolate", "expire", "cut off", "lag")
)
_LONG: Final = frozenset(("freeze", "expire", "cut off", "lag", "full disk"))
"""Faults so long that the other brokers must take over."""
_OF_ZOOKEEPER: Final = "zookeeper: "
_OF_ALL: Final = "kill all"
_LONG_OR_SHORT: Final = frozenset(("clock", "zookeeper: kill", "zookeeper: pause"))
_MINUTE_MS: Final = 60_000
JUMPS_MS: Final = tuple(minutes * _MINUTE_MS for minutes in (-300, -45, -5, -1, 1, 5, 45, 300))
"""Less than a day, after which producer ids may be forgotten. By more than an hour back, records of
clients that have the right time are refused (`message.timestamp.after.max.ms`)."""
TOO_EARLY: Final = 0.3
"""The share of brokers that are started on a full disk."""
EARLY_S: Final = 3.0
APART_S: Final = 2.0
"""The longest time between two starts, after all were killed."""
PROBE: Final = "probe"
PROBE_S: Final = 12.0
"""The time that one write may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaults:
    """The kinds of faults, and how often they come."""

    between_s: tuple[float, float] = (0.5, 2.0)
    """The time from a whole cluster to the next fault."""
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)


class ClusterNemesis:
    """Call `step` in a loop; `finish` at the end."""

    def __init__(self, cluster: BrokerCluster, random: Random, plan: ClusterFaults) -> None:
        self._cluster = cluster
        self._random = random
        self._plan = plan
        self.counts: Counter[str] = Counter()
        self.slowest_s = 0.0
        """The longest time from the end of a fault to a whole cluster."""
        self.findings: list[str] = []
        self._weights = {kind: weight for kind, weight in plan.weights.items() if self._can(kind)}
        self._long: int | None = None
        """The broker that a fault keeps away for long."""
        if (PROBE, 0) not in cluster.view().partitions:
            cluster.create(PROBE, rotated(sorted(cluster.members), len(cluster.members)))
        self._end: Callable[[], None] | None = None
        self._due = time.monotonic() + random.uniform(*plan.between_s)
        self._healing_since: float | None = None
        self.told: list[str] = []
        """A line for each fault, with the time since the beginning."""
        self._began = time.monotonic()

    def step(self) -> None:
        """Begin or end a fault if that is due. Raises AssertionError if it stays broken."""
        if self._healing_since is not None:
            self._look_whether_whole(self._healing_since)
        elif time.monotonic() >= self._due:
            if self._end is None:
                self._begin()
            else:
                self._finish_fault()

    def finish(self) -> None:
        """End what is going on; wait until the cluster is whole."""
        if self._end is not None:
            self._finish_fault()
        self._is_whole_after(self._cluster.wait_until_whole(HEALING_S))

    def _begin(self) -> None:
        random = self._random
        kind = random.choices(tuple(self._weights), tuple(self._weights.values()))[0]
        seconds = random.uniform(*(LONG_S if kind in _LONG else SHORT_S))
        if kind in _LONG_OR_SHORT:
            seconds = random.choice((seconds, random.uniform(*LONG_S)))
        if kind.startswith(_OF_ZOOKEEPER):
            role = random.choice(("leader", "follower"))
            who = "a server"
            self._end = self._harm_zookeeper(kind, role)
        elif kind == _OF_ALL:
            role, who = "brokers", "every one"
            self._end = self._kill_all()
        else:
            role = random.choice(ROLES)
            broker = self._who(role, kind)
            who = f"broker {broker}"
            self._end = self._do(kind, broker)
            self._long = broker if kind in _LONG else None
        self.counts[f"{kind} {role}"] += 1
        self._note(f"{kind} {role}: {who} for {seconds:.1f} s")
        self._due = time.monotonic() + seconds

    def _can(self, kind: str) -> bool:
        cluster = self._cluster
        if kind == "full disk":
            return bool(cluster.disks)
        if kind == "clock":
            return any(member.has_clock for member in cluster)
        if kind.startswith(_OF_ZOOKEEPER):
            return len(cluster.ensemble.servers) > 1
        return kind not in _OF_NETWORK or cluster.network is not None

    def _harm_zookeeper(self, kind: str, role: str) -> Callable[[], None]:
        ensemble = self._cluster.ensemble
        leader = ensemble.leader()
        followers = [server for server in ensemble.servers if server is not leader]
        server = leader if role == "leader" else self._random.choice(followers)
        if kind == "zookeeper: pause":
            server.pause()
            return server.resume
        server.kill()
        return lambda: (server.start(), None)[1]

    def _kill_all(self) -> Callable[[], None]:
        """Every replica of a record goes at once: only what is in the logs comes back."""
        members = list(self._cluster)
        for member in members:
            os.kill(member.pid, signal.SIGKILL)
        for member in members:
            member.kill()

        def start() -> None:
            # The first may lead without the others, and must have what was acknowledged.
            self._random.shuffle(members)
            for member in members:
                member.begin()
                time.sleep(self._random.uniform(0, APART_S))
            for member in members:
                member.wait_until_member()

        return start

    def _do(self, kind: str, broker: int) -> Callable[[], None]:
        member = self._cluster[broker]
        if kind == "full disk":
            return self._fill(broker)
        if kind == "clock":
            member.set_clock(self._random.choice(JUMPS_MS))
            return lambda: member.set_clock(0)
        if kind in ("kill", "stop"):
            member.kill() if kind == "kill" else member.stop()
            return lambda: (member.start(), None)[1]
        if kind in ("pause", "freeze"):
            member.pause()
            return member.resume
        network = self._cluster.network
        assert network is not None, f"{kind} needs a network"
        self._cut(network, kind, broker)
        return network.heal

    def _fill(self, broker: int) -> Callable[[], None]:
        member, disks = self._cluster[broker], self._cluster.disks[broker]
        full = self._random.choice((disks[:1], disks[1:], disks))
        too_early = self._random.random() < TOO_EARLY
        for disk in full:
            disk.fill()

        def repair() -> None:
            if full is disks or too_early:
                member.kill()  # With no disk left it has ended, unless nothing was to be written.
            if too_early:
                member.begin()
                time.sleep(EARLY_S)
                member.kill()
            for disk in full:
                disk.give_room()
            member.stop()
            member.start()

        return repair

    def _cut(self, network: Network, kind: str, broker: int) -> None:
        others = [each for each in self._cluster.members if each != broker]
        if kind == "mute":
            for other in others:
                network.mute(other, broker)
        elif kind == "cut one way":
            for other in others:
                network.cut(broker, other)
        elif kind == "cut":
            network.cut_both(broker, self._random.choice(others))
        elif kind == "expire":
            network.cut(broker, ZOOKEEPER)
        else:  # isolate, lag, cut off
            network.isolate(broker, also_from_zookeeper=kind == "cut off")

    def _finish_fault(self) -> None:
        assert self._end is not None
        if self._long is not None:
            self._expect_a_write(without=self._long)
        self._long = None
        end, self._end = self._end, None
        end()
        self._healing_since = time.monotonic()

    def _look_whether_whole(self, since: float) -> None:
        took = time.monotonic() - since
        views = self._cluster.views()
        if len(views) == len(self._cluster.members) and all(map(self._is_whole, views.values())):
            self._is_whole_after(took)
            self._healing_since = None
            self._due = time.monotonic() + self._random.uniform(*self._plan.between_s)
        elif took > HEALING_S:
            raise AssertionError(
                f"not whole {HEALING_S} s after the end of a fault\n"
                + "\n".join((*self.told, *(f"{who}: {view}" for who, view in views.items())))
                + self._cluster.outputs()
            )

    def _is_whole_after(self, seconds: float) -> None:
        self.slowest_s = max(self.slowest_s, seconds)
        self._note(f"whole again after {seconds:.1f} s")

    def _is_whole(self, view: ClusterView) -> bool:
        everybody = set(view.brokers) == set(self._cluster.members)
        return everybody and view.controller >= 0 and not view.under_replicated()

    def _expect_a_write(self, *, without: int) -> None:
        """Write to the partitions that other brokers lead by now; one must acknowledge."""
        others = [member for member in self._cluster.running if member.broker_id != without]
        written: list[int] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": ",".join(member.bootstrap for member in others),
                "acks": "all",
                "message.timeout.ms": int(PROBE_S * 1000),
                "log_level": 0,
            }
        )
        for partition in range(len(self._cluster.members)):
            producer.produce(
                PROBE,
                b"",
                partition=partition,
                on_delivery=lambda error, m: None if error else written.append(m.partition()),
            )
        deadline = time.monotonic() + PROBE_S
        while not written and time.monotonic() < deadline:
            producer.poll(0.1)
        if not written:
            self.findings.append(f"no write is acknowledged while broker {without} is away")
            self._note(self.findings[-1])

    def _who(self, role: str, kind: str) -> int:
        able = [member.broker_id for member in self._cluster if kind != "clock" or member.has_clock]
        view = self._cluster.view()
        if kind == "lag":
            able.remove(view.controller)
        broker = -1
        if role == "controller":
            broker = view.controller
        elif role != "any":
            topic = {
                "leader": "t",
                "group coordinator": "__consumer_offsets",
                "transaction coordinator": "__transaction_state",
            }[role]
            leaders = [each.leader for (name, _), each in view.partitions.items() if name == topic]
            broker = self._random.choice(leaders) if leaders else -1
        return broker if broker in able else self._random.choice(able)

    def _note(self, line: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:6.1f} s  {line}")
