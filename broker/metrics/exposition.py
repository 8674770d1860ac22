"""Metric families as Prometheus' text, without stalling the event loop.

A broker with ten thousand partitions has forty thousand lines. They are rendered by
`prometheus_client`, but a few hundred at a time with a checkpoint in between: a thread with that
much Python would cost every request of the broker (see docs/ARCHITECTURE.md).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import trio
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

CHUNK = 200
"""Samples rendered in one go: about a millisecond."""


class _Collected:
    """A registry of families that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """What `generate_latest` asks a registry for."""
        return self._families


class ProcessFamilies:
    """`process_*`, `python_gc_*`, `python_info`: of this process."""

    def __init__(self) -> None:
        self._collectors: tuple[Any, ...] = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=None),
            _unregistered_gc_collector(),
        )

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        for collector in self._collectors:
            yield from collector.collect()


def _unregistered_gc_collector() -> GCCollector:
    from prometheus_client import CollectorRegistry

    return GCCollector(registry=CollectorRegistry())


async def render(families: Iterable[Metric | None]) -> bytes:
    """The text of all families. A checkpoint after every `CHUNK` samples, and for each None."""
    pieces = []
    for family in families:
        if family is None:
            await trio.lowlevel.checkpoint()
            continue
        pieces += [piece async for piece in _render_family(family)]
        await trio.lowlevel.checkpoint()
    return b"".join(pieces)


async def _render_family(family: Metric) -> Any:
    samples = family.samples
    if len(samples) <= CHUNK:
        yield generate_latest(_Collected([family]))
        return
    for start in range(0, len(samples), CHUNK):
        part = Metric(family.name, family.documentation, family.type, family.unit)
        part.samples = samples[start : start + CHUNK]
        text = generate_latest(_Collected([part]))
        if start:  # HELP and TYPE stand once
            text = b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"# "))
        yield text
        await trio.lowlevel.checkpoint()
