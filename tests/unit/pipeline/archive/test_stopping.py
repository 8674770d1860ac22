"""A signal stops a continuous archive between two calls to the JVM."""

import os
import signal
from typing import Any

import pytest

from pipeline.archive.archiving import Archiving, Parts, Source
from pipeline.archive.command import _told_to_stop
from pipeline.archive.evolving import Evolving
from pipeline.archive.place import Place
from pipeline.archive.values import Decoding


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_a_second_one_ends_the_process(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with _told_to_stop() as stopping:
        assert not stopping()
        os.kill(os.getpid(), number)
        assert stopping()
        assert signal.getsignal(number) == signal.SIG_DFL
    assert signal.getsignal(number) == before


class FakeQuery:
    """A query that never ends by itself; also what makes one."""

    lastProgress = None

    def __init__(self) -> None:
        self.waited = 0
        self.stopped = False
        self.set: dict[str, Any] = {}

    @property
    def readStream(self) -> "FakeQuery":
        return self

    def load(self, *_: Any) -> "FakeQuery":
        return self

    writeStream = readStream
    start = format = foreachBatch = load

    def options(self, **settings: Any) -> "FakeQuery":
        self.set |= settings
        return self

    def option(self, name: str, value: Any) -> "FakeQuery":
        self.set[name] = value
        return self

    def trigger(self, **how: Any) -> "FakeQuery":
        self.set |= how
        return self

    def awaitTermination(self, _timeout: float) -> bool:
        self.waited += 1
        return False

    def stop(self) -> None:
        self.stopped = True


def test_the_query_is_stopped_when_told_and_reads_what_is_committed() -> None:
    query = FakeQuery()
    table: Any = None
    source = Source("somewhere:1", ("a", "b"), max_offsets=7)
    parts = Parts(source, Place.of("/lake/orders"), table, Evolving(Decoding()))
    Archiving(query, parts).run(2.5, stopping=lambda: query.waited == 3)
    assert query.stopped and query.waited == 3
    assert query.set["processingTime"] == "2500 milliseconds"
    assert query.set["checkpointLocation"] == "/lake/_orders.archive/checkpoint"
    assert query.set["kafka.isolation.level"] == "read_committed"
    assert query.set["failOnDataLoss"] == "true"
    assert query.set["includeHeaders"] == "true"
    assert query.set["subscribe"] == "a,b"
    assert query.set["maxOffsetsPerTrigger"] == "7"
