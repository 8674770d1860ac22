"""The cases that the bench measures: a file for each idea, a function for each case.

A case is a context manager. It prepares a side, yields a function that measures once and returns
figures by name, and puts things back. The bench prepares all sides, lets each measure once to warm
up, and then lets them measure in alternation. The unit is part of a figure's name; a figure per
second is better if it is higher, any other figure if it is lower.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from load import Load
from sides import Side

Figures = dict[str, float]
Measure = Callable[[], Figures]


@dataclass
class Bench:
    """The means by which a case measures."""

    loads: list[Load]
    """Clients: the first measures, the others are beside it."""
    seconds: float
    """Seconds of one measurement, if the case does not need another time."""
    megabytes: int
    """Megabytes that Kafka's tools produce for one measurement."""
    quick: bool
    kept: ExitStack = field(default_factory=ExitStack)
    """Ends after the case."""
    _topics: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def warm(self) -> float:
        """Seconds before those of a measurement, at the same load."""
        return self.seconds / 4

    def load(
        self,
        side: Side,
        frames: list[bytes],
        connections: int,
        inflight: int = 1,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Send requests for the time of a measurement; return the client's result."""
        seconds = seconds or self.seconds
        return self.loads[0].run(
            "load",
            frames,
            port=side.port,
            pid=side.pid,
            connections=connections,
            inflight=inflight,
            seconds=seconds,
            warm=seconds / 4,
        )

    @contextmanager
    def topic(self, side: Side, partitions: int = 1) -> Iterator[str]:
        """A topic for one measurement. A quick bench writes little and keeps it for the case."""
        if not self.quick:
            with side.topics(1, partitions) as (name,):
                yield name
            return
        key = side.name, partitions
        if key not in self._topics:
            (self._topics[key],) = self.kept.enter_context(side.topics(1, partitions))
        yield self._topics[key]

    def end_case(self) -> None:
        """Delete the topics that were kept."""
        self._topics.clear()
        self.kept.close()


@dataclass(frozen=True)
class Case:
    """One case, as the bench runs it."""

    about: str
    prepare: Callable[[Bench, Side], AbstractContextManager[Measure]]
    quick: bool
    """Whether it is one of `--quick`."""
    floor: bool
    """Whether the floor can be measured: it takes frames and knows no topic."""


def case(
    prepare: Callable[..., Iterator[Measure]],
    *args: object,
    quick: bool = False,
    floor: bool = False,
) -> Case:
    """A case that is `prepare(bench, side, *args)`, a generator as `contextmanager` takes it."""
    about = (prepare.__doc__ or "").splitlines()[0]
    made = contextmanager(lambda bench, side: prepare(bench, side, *args))
    return Case(about, made, quick, floor)


def per_request(told: dict[str, Any]) -> Figures:
    """The figures of a load's requests."""
    count = told["requests"]
    return {
        "requests/s": count / told["seconds"],
        "CPU us/request": told["broker_cpu"] / count * 1e6,
        "p50 ms": told["ms_p50"],
        "p99 ms": told["ms_p99"],
        "client CPU us/request": told["client_cpu"] / count * 1e6,
    }
