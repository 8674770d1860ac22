"""The clients that take part in a run."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.anomalies.workload.worker import Job

TOPICS: Final = {"t": 3, "in": 4, "out": 3}
"""Topic to number of partitions."""


def _keys(topic: str) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for number in range(TOPICS[topic]))


T, IN, OUT = _keys("t"), _keys("in"), _keys("out")
ALL: Final = T + IN + OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A client of a run. The run adds port, seed and incarnation to make a `worker.Job`."""

    role: str
    library: str
    name: str
    keys: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    group: str | None = None
    subscribe: bool = False

    @property
    def has_transactions(self) -> bool:
        """Whether its name is a transactional id."""
        return self.role not in ("poller", "appender")

    def command(self) -> tuple[str, ...]:
        """Return the words of its process, without the job."""
        if self.library == "java":
            from tests.anomalies.workload.java_client import command

            return command()
        return (sys.executable, "-m", "tests.anomalies.workload.worker")

    def job(self, *, incarnation: int, bootstrap: str, history: str, seed: int) -> Job:
        """Return the job of its next process."""
        return Job(
            role=self.role,
            library=self.library,
            name=self.name,
            keys=self.keys,
            inputs=self.inputs,
            group=self.group,
            subscribe=self.subscribe,
            incarnation=incarnation,
            bootstrap=bootstrap,
            history=history,
            seed=seed,
        )


def _sender(library: str, number: int = 0) -> Member:
    return Member(role="sender", library=library, name=f"{library}-send-{number}", keys=T + IN)


def _mixer(library: str) -> Member:
    return Member(role="mixer", library=library, name=f"{library}-mix", keys=T, inputs=T)


def _assigned_copier(number: int, inputs: tuple[str, ...]) -> Member:
    return Member(
        role="copier",
        library="modern",
        name=f"modern-copy-{number}",
        keys=OUT,
        inputs=inputs,
        group="assigned-copiers",
    )


def _member_copier(number: int) -> Member:
    return Member(
        role="copier",
        library="confluent",
        name=f"confluent-copy-{number}",
        keys=OUT,
        inputs=IN,
        group="member-copiers",
        subscribe=True,
    )


def _poller(library: str, *, subscribe: bool) -> Member:
    return Member(
        role="poller",
        library=library,
        name=f"{library}-{'member' if subscribe else 'reader'}",
        keys=T + OUT if subscribe else ALL,
        group="readers" if subscribe else None,
        subscribe=subscribe,
    )


CROWD: Final[Sequence[Member]] = (
    _sender("modern", 0),
    _sender("modern", 1),
    _sender("confluent"),
    _sender("aiokafka"),
    _sender("kafka-python"),
    _mixer("modern"),
    _mixer("confluent"),
    _assigned_copier(0, IN[:2]),
    _assigned_copier(1, IN[2:]),
    _member_copier(0),
    _member_copier(1),
    _poller("confluent", subscribe=False),
    _poller("kafka-python", subscribe=False),
    _poller("aiokafka", subscribe=False),
    _poller("aiokafka", subscribe=True),
    _poller("kafka-python", subscribe=True),
)
"""All libraries, both protocols, readers with and without groups."""


SENDERS_AND_READERS: Final[Sequence[Member]] = (
    _sender("modern", 0),
    _sender("modern", 1),
    _sender("confluent"),
    _poller("confluent", subscribe=False),
)
"""The fewest clients that notice when a broker breaks one of its guarantees."""

COPIERS: Final[Sequence[Member]] = (
    _sender("modern", 0),
    _assigned_copier(0, IN[:2]),
    _assigned_copier(1, IN[2:]),
    _poller("confluent", subscribe=False),
)
"""The fewest clients that notice what becomes of committed offsets."""
OLDER_SENDERS: Final[Sequence[Member]] = (
    _sender("confluent", 0),
    _sender("confluent", 1),
    _poller("confluent", subscribe=False),
)
MODERN_SENDERS: Final[Sequence[Member]] = (
    _sender("modern", 0),
    _sender("modern", 1),
    _poller("confluent", subscribe=False),
)
"""Clients that differ only in the protocol of their transactions."""


def _appender(library: str) -> Member:
    return Member(role="appender", library=library, name=f"{library}-append", keys=T + IN)


OVER_A_CLUSTER: Final[Sequence[Member]] = (
    _sender("confluent"),
    _sender("java"),
    _appender("confluent"),
    _appender("java"),
    _mixer("confluent"),
    _member_copier(0),
    _member_copier(1),
    _poller("confluent", subscribe=False),
    _poller("java", subscribe=True),
)
"""The clients of a run over several brokers. The raw client knows one broker only."""

FEW_OVER_A_CLUSTER: Final[Sequence[Member]] = (
    _sender("confluent"),
    _appender("confluent"),
    _member_copier(0),
    _poller("confluent", subscribe=False),
)
"""The fewest; no JVM, so that the brokers have the machine."""
