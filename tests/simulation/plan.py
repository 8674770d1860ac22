"""The plan of a seed, as data: it can be printed, compared and made smaller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from tests.anomalies.faults.plan import Fault, FaultPlan

TOPICS: Final = {"t": 2, "in": 2, "out": 2}
"""Topic to number of partitions."""


def keys_of(topic: str) -> tuple[str, ...]:
    """The partitions of a topic."""
    return tuple(f"{topic}-{number}" for number in range(TOPICS[topic]))


T, IN, OUT = keys_of("t"), keys_of("in"), keys_of("out")
ALL: Final = T + IN + OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A client; `tests.anomalies.workload.roles` has the roles."""

    role: str
    """sender, mixer, copier or poller."""
    name: str
    keys: tuple[str, ...]
    """The partitions that it writes to; for a poller: those that it reads."""
    inputs: tuple[str, ...] = ()
    version: int = 2
    """The version of its transactions."""
    timeout_ms: int = 8000
    """The timeout of its transactions."""
    group: str = ""
    subscribe: bool = False

    @property
    def has_transactions(self) -> bool:
        """Whether its name is a transactional id."""
        return self.role != "poller"


class Kind(Enum):
    """The events that may meet broker, clients, network, disk and time."""

    KILL_BROKER = "kill broker"
    RESTART_BROKER = "restart broker"
    PAUSE_BROKER = "pause broker"
    LOSE_POWER = "lose power"
    BREAK_DISK = "break disk"
    FILL_DISK = "fill disk"
    SHIFT_WALL = "shift wall clock"
    KILL_CLIENT = "kill client"
    PAUSE_CLIENT = "pause client"
    ZOMBIE = "zombie"
    DROP_CONNECTIONS = "drop connections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. Times are virtual seconds."""

    at: float
    kind: Kind
    lasts: float
    pick: float
    """A number from 0 to 1, which picks a client, a directory or a share."""

    def __str__(self) -> str:
        return f"{self.at:7.3f} {self.kind.value} for {self.lasts:.3f} s, pick {self.pick:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that was drawn from one seed."""

    seed: int
    seconds: float
    crowd: tuple[Member, ...]
    events: tuple[Event, ...]
    chances: Mapping[Fault, float]
    pace: float
    """The factor by which clients pause longer than in real runs: virtual time costs nothing,
    requests do. A leisurely run outlasts sessions and timeouts."""
    is_durable: bool
    """Whether every append is synced, so that acknowledged records survive a power loss."""
    settings: Mapping[str, str] = field(default_factory=dict)
    last_restart: Kind | None = None
    """The kind of the last restart, after which everything is read once more; None: no restart."""

    @property
    def may_forget(self) -> bool:
        """Whether the last restart may lose acknowledged records: a power loss, nothing synced."""
        return self.last_restart is Kind.LOSE_POWER and not self.is_durable

    @property
    def is_compacted(self) -> bool:
        """Whether the topics of clients are compacted."""
        return self.settings.get("log.cleanup.policy") == "compact"

    @property
    def network(self) -> FaultPlan:
        """The faults of the network."""
        return FaultPlan(chances=self.chances)

    def text(self) -> str:
        """Return the plan for a person to read."""
        chances = ", ".join(f"{fault.value} {share:.3f}" for fault, share in self.chances.items())
        lines = [
            f"seed {self.seed}, {self.seconds:.1f} virtual seconds, pace {self.pace:g}, "
            f"{'every append synced' if self.is_durable else 'appends not synced'}, "
            f"last restart: {self.last_restart.value if self.last_restart else 'none'}",
            f"network: {chances or 'good'}",
            *(f"{key}={value}" for key, value in self.settings.items()),
            *(
                f"{member.name}: {member.role}"
                f"{f' of version {member.version}' if member.has_transactions else ''}"
                f"{f', group {member.group}' if member.group else ''}"
                f"{', subscribed' if member.subscribe else ''}"
                for member in self.crowd
            ),
            *(str(event) for event in self.events),
        ]
        return "\n".join(lines)


_WEIGHTS: Final = {
    Kind.KILL_BROKER: 2.0,
    Kind.RESTART_BROKER: 1.0,
    Kind.PAUSE_BROKER: 1.0,
    Kind.LOSE_POWER: 4.0,
    Kind.BREAK_DISK: 0.7,
    Kind.FILL_DISK: 0.5,
    Kind.SHIFT_WALL: 0.5,
    Kind.KILL_CLIENT: 2.0,
    Kind.PAUSE_CLIENT: 1.5,
    Kind.ZOMBIE: 3.0,
    Kind.DROP_CONNECTIONS: 1.5,
}
_LASTS: Final = {
    Kind.KILL_BROKER: (0.1, 3.0),
    Kind.LOSE_POWER: (0.1, 3.0),
    Kind.PAUSE_BROKER: (0.1, 9.0),
    Kind.PAUSE_CLIENT: (0.2, 20.0),
    Kind.ZOMBIE: (0.1, 6.0),
    Kind.SHIFT_WALL: (0.0, 600.0),
}
_CHANCES: Final = {
    Fault.DROP_ANSWER: 0.03,
    Fault.LATE: 0.03,
    Fault.REPLAY: 0.08,
    Fault.DELAY: 0.02,
    Fault.CUT: 0.01,
}


def drawn(seed: int) -> Plan:
    """The plan of a seed."""
    random = Random(f"plan {seed}")
    pace = random.choice((6.0, 15.0, 50.0))
    seconds = pace * random.uniform(0.15, 0.35)
    is_durable = random.random() < 0.5
    return Plan(
        seed=seed,
        seconds=seconds,
        pace=pace,
        crowd=_crowd(random),
        events=_events(random, seconds, is_durable=is_durable),
        chances=_CHANCES if random.random() < 0.7 else {},
        is_durable=is_durable,
        settings={**_settings(random, is_durable=is_durable), **_cleaning(seed)},
        last_restart=random.choice((None, Kind.RESTART_BROKER, Kind.KILL_BROKER, Kind.LOSE_POWER)),
    )


def _settings(random: Random, *, is_durable: bool) -> dict[str, str]:
    settings = {
        "log.segment.bytes": str(random.choice((1500, 4000, 16000))),
        "log.index.size.max.bytes": str(random.choice((96, 4096))),
        "log.index.interval.bytes": str(random.choice((0, 200, 4096))),
        "offsets.topic.num.partitions": str(random.choice((1, 3))),
        "transaction.state.log.num.partitions": str(random.choice((1, 3))),
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": str(random.choice((0, 100, 1000))),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((500, 60000))),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice((500, 60000))),
        "log.initial.task.delay.ms": "300",
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((500, 5000))),
        "log.segment.delete.delay.ms": "1000",
    }
    if is_durable:
        settings["log.flush.interval.messages"] = "1"
    return settings


def _cleaning(seed: int) -> dict[str, str]:
    """Coordinators' topics are always compacted, those of clients in two seeds of three.

    Each record of a client has a key of its own, so none goes but those of aborted transactions.
    """
    random = Random(f"cleaning {seed}")
    small = (1500, 6000, 104857600)
    return {
        "log.cleanup.policy": random.choice(("delete", "compact", "compact")),
        "log.cleaner.threads": str(random.choice((1, 2))),
        "log.cleaner.backoff.ms": str(random.choice((50, 500))),
        "log.cleaner.min.cleanable.ratio": random.choice(("0.0", "0.3")),
        "log.cleaner.delete.retention.ms": random.choice(("0", "500", "86400000")),
        "offsets.topic.segment.bytes": str(random.choice(small)),
        "transaction.state.log.segment.bytes": str(random.choice(small)),
    }


def _events(random: Random, seconds: float, *, is_durable: bool) -> tuple[Event, ...]:
    # Most seeds know a few kinds only: together they would hide each other's effects.
    kinds = random.sample([k for k in Kind if k is not Kind.LOSE_POWER], random.randint(1, 5))
    if is_durable and random.random() < 0.9:
        kinds.append(Kind.LOSE_POWER)
    events = []
    at = random.uniform(0.02, 0.2) * seconds
    while at < seconds:
        (kind,) = random.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
        lasts = random.uniform(*_LASTS.get(kind, (0.0, 0.8)))
        events.append(Event(at=at, kind=kind, lasts=lasts, pick=random.random()))
        at += random.uniform(0.04, 0.3) * seconds
    return tuple(events)


def _crowd(random: Random) -> tuple[Member, ...]:
    copiers = random.choice(("none", "assigned", "members"))
    return (
        *(_sender(random, number) for number in range(random.choice((1, 2, 2)))),
        *(_mixer(random) for _ in range(random.random() < 0.3)),
        *(_copier(random, number, copiers) for number in range(2) if copiers != "none"),
        Member(role="poller", name="read-0", keys=ALL),
        *(_reading_member(number) for number in range(random.choice((0, 2, 3)))),
    )


def _version(random: Random) -> int:
    return random.choice((2, 2, 1))


def _timeout_ms(random: Random) -> int:
    return random.choice((2000, 8000))


def _sender(random: Random, number: int) -> Member:
    return Member(
        role="sender",
        name=f"send-{number}",
        keys=T + IN,
        version=_version(random),
        timeout_ms=_timeout_ms(random),
    )


def _mixer(random: Random) -> Member:
    return Member(
        role="mixer", name="mix", keys=T, inputs=T, version=_version(random), timeout_ms=8000
    )


def _copier(random: Random, number: int, kind: str) -> Member:
    """One of two; "members" share the partitions of a group, "assigned" ones have their own."""
    return Member(
        role="copier",
        name=f"copy-{number}",
        keys=OUT,
        inputs=IN if kind == "members" else IN[number : number + 1],
        group=f"{kind}-copiers",
        subscribe=kind == "members",
        version=_version(random),
        timeout_ms=_timeout_ms(random),
    )


def _reading_member(number: int) -> Member:
    return Member(
        role="poller", name=f"member-{number}", keys=T + OUT, group="readers", subscribe=True
    )
