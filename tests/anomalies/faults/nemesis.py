"""Faults of processes: kills, pauses, zombies. They are drawn from the seed.

kill broker        -9, and a start on the same directory after a while
restart broker     a clean stop, and a start after a while
pause broker       SIGSTOP, SIGCONT
kill client        -9; a new incarnation takes over its transactional id
pause client       SIGSTOP, SIGCONT; some for longer than a transaction may last
zombie             a client is stopped, its successor begins, then the zombie goes on beside it
drop connections   some or all, at once
"""

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from tests.anomalies.workload.clients import TRANSACTION_TIMEOUT_MS


class Broker(Protocol):
    """The broker's process: a `ServerProcess`."""

    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Clients(Protocol):
    """The processes of clients: `ClientProcesses`."""

    def pick(self, random: Random, *, transactional: bool) -> str | None: ...
    def kill(self, name: str) -> None: ...
    def pause(self, name: str) -> int | None: ...
    def resume(self, pid: int) -> None: ...
    def replace(self, name: str) -> None: ...


class Stage(Protocol):
    """The parts of a run that the nemesis may harm: `run.Run`."""

    @property
    def broker(self) -> Broker: ...
    @property
    def clients(self) -> Clients: ...
    def start_broker(self) -> None: ...
    def drop_connections(self, share: float) -> None: ...


DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {
    "kill broker": 2,
    "restart broker": 0.5,
    "pause broker": 1,
    "kill client": 3,
    "pause client": 2,
    "zombie": 3,
    "drop connections": 2,
}


SLOW_START_WEIGHTS: Final[Mapping[str, float]] = {
    **DEFAULT_WEIGHTS,
    "kill broker": 0.4,
    "restart broker": 0,
}
"""For a broker that needs many seconds to start, as Apache Kafka does."""
PAUSE_S: Final = (0.2, 4.0)
LONG_PAUSE_S: Final = (TRANSACTION_TIMEOUT_MS / 1000 + 1, TRANSACTION_TIMEOUT_MS / 1000 + 5)
LONG_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class NemesisPlan:
    """The kinds of faults, and how often they come."""

    between_s: tuple[float, float] = (0.3, 1.8)
    """The least and the longest time from one fault to the next."""
    weights: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)


class Nemesis:
    """Draws faults from the seed, and carries out each of them and its end when they are due."""

    def __init__(
        self,
        stage: Stage,
        random: Random,
        plan: NemesisPlan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stage = stage
        self._random = random
        self._plan = plan
        self._clock = clock
        self._appointments: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._broker_is_busy = False
        self._next = self._clock() + random.uniform(*plan.between_s)
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Do what is due."""
        while self._appointments and self._appointments[0][0] <= self._clock():
            heapq.heappop(self._appointments)[2]()
        now = self._clock()
        if now >= self._next and self._plan.weights:
            self._next = now + self._random.uniform(*self._plan.between_s)
            kinds, weights = zip(*self._plan.weights.items(), strict=True)
            self._begin(self._random.choices(kinds, weights)[0])

    def finish(self) -> None:
        """Keep all appointments now: nobody stays dead or paused."""
        while self._appointments:
            heapq.heappop(self._appointments)[2]()

    def _later(self, after_s: float, what: Callable[[], None]) -> None:
        item = (self._clock() + after_s, next(self._numbers), what)
        heapq.heappush(self._appointments, item)

    def _begin(self, kind: str) -> None:
        stage, random = self._stage, self._random
        if kind.endswith(" broker"):
            if self._broker_is_busy:
                return
            self._broker_is_busy = True
            broker = stage.broker
            end, back, longest_s = {
                "kill broker": (broker.kill, stage.start_broker, 0.8),
                "restart broker": (broker.stop, stage.start_broker, 0.8),
                "pause broker": (broker.pause, broker.resume, 2.5),
            }[kind]
            end()
            self._later(random.uniform(0.0, longest_s), lambda: self._broker(back))
        elif kind == "drop connections":
            stage.drop_connections(random.choice((0.2, 0.5, 1.0)))
        else:
            name = stage.clients.pick(random, transactional=kind == "zombie")
            if name is None:
                return
            if kind == "kill client":
                stage.clients.kill(name)
            else:
                self._pause(name, zombie=kind == "zombie")
        self.counts[kind] += 1

    def _broker(self, back: Callable[[], None]) -> None:
        back()
        self._broker_is_busy = False
        # A start takes its time: the next fault shall not follow on its heels.
        self._next = max(self._next, self._clock() + self._plan.between_s[0])

    def _pause(self, name: str, *, zombie: bool) -> None:
        clients, random = self._stage.clients, self._random
        pid = clients.pause(name)
        if pid is None:
            return
        if zombie:
            clients.replace(name)
        pauses = LONG_PAUSE_S if random.random() < LONG_SHARE else PAUSE_S
        self._later(random.uniform(*pauses), lambda: clients.resume(pid))
