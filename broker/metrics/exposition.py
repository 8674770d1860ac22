"""Metric families as Prometheus' text, without stalling the event loop.

A broker with ten thousand partitions has two hundred thousand lines. They are made in chunks with a
pause after each: a thread that runs so much Python would hold the interpreter's lock and slow
down every request. The text stays in pieces, because joining twenty megabytes takes long.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker.metrics.lines import Lines
from storage.waits import PAUSE

CHUNK: Final = 200
"""Samples of a `Metric` that are rendered at once: about a millisecond."""
PIECE_BYTES: Final = 64 * 1024
"""Chunks are joined to pieces of at least this size, since each piece is sent by itself."""


class _Collected:
    """A registry whose families were collected before."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the families; called by `generate_latest`."""
        return self._families


class ProcessFamilies:
    """The families `process_*`, `python_gc_*` and `python_info` of this process."""

    def __init__(self) -> None:
        self._collectors: tuple[Collector, ...] = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=None),
            _unregistered_gc_collector(),
        )

    def collect(self) -> Iterator[Metric]:
        """Yield all families, read now."""
        for collector in self._collectors:
            yield from collector.collect()


def _unregistered_gc_collector() -> GCCollector:
    from prometheus_client import CollectorRegistry

    return GCCollector(registry=CollectorRegistry())


async def render(families: list[Metric | Lines]) -> list[bytes]:
    """Return the text of all families, in pieces. Pauses after each chunk.

    Takes each family out of the list, so that the memory of its lines is free once they are joined.
    """
    pieces: list[bytes] = []
    small: list[bytes] = []
    size = 0
    families.reverse()
    while families:
        for chunk in _chunks(families.pop()):
            small.append(chunk)
            size += len(chunk)
            if size >= PIECE_BYTES:
                pieces.append(b"".join(small))
                small.clear()
                size = 0
            await PAUSE
    pieces.append(b"".join(small))
    return pieces


def _chunks(family: Metric | Lines) -> Iterator[bytes]:
    if isinstance(family, Lines):
        return family.chunks()
    return _rendered(family)


def _rendered(family: Metric) -> Iterator[bytes]:
    samples = family.samples
    if len(samples) <= CHUNK:
        yield generate_latest(_Collected([family]))
        return
    for start in range(0, len(samples), CHUNK):
        part = Metric(family.name, family.documentation, family.type, family.unit)
        part.samples = samples[start : start + CHUNK]
        text = generate_latest(_Collected([part]))
        if start:  # HELP and TYPE come only before the first chunk
            text = b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"# "))
        yield text
