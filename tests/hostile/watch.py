"""Measures of a broker, and of a good client beside it, during a hostile act.

with watched(broker) as watch:
    ...                            # the attack
print(watch)                       # its cost; at the end the four questions are answered
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pykafkalog.reader import PartitionView
from tests.hostile.attacks import create_topic
from tests.support.broker_process import BrokerProcess
from tests.support.installation import CHECKOUT

LONGEST_WAIT_MS = 250
MOST_GROWTH = 300 << 20
KEPT_GROWTH = 100 << 20
"""Memory that may stay: the allocator's, and the page tables of a file that was read."""
RETURN_S = 20
"""The time in which memory must come back."""
TOPIC = "good"


@dataclass
class Watch:
    """Sizes are bytes, times milliseconds."""

    acknowledged: int = 0
    slowest: list[tuple[float, str]] = field(default_factory=list)
    resident_before: int = 0
    resident_peak: int = 0
    resident_after: int = 0

    @property
    def longest_wait_ms(self) -> float:
        """The longest wait of the good client."""
        return self.slowest[0][0]

    def __str__(self) -> str:
        grown = (self.resident_peak - self.resident_before) >> 20
        kept = (self.resident_after - self.resident_before) >> 20
        return (
            f"longest wait {self.longest_wait_ms:.0f} ms of {self.acknowledged} rounds, memory "
            f"{self.resident_before >> 20} MB, at most +{grown} MB, afterwards {kept:+} MB; "
            f"slowest: {self.slowest}"
        )


@contextmanager
def watched(broker: BrokerProcess, *, kept: int = KEPT_GROWTH) -> Iterator[Watch]:
    """Let a good client work while the block runs. Raises AssertionError if it was harmed.

    `kept`: bytes of memory that may stay, because the broker has to remember what was done.
    """
    pid = broker.pid
    create_topic(broker.port, TOPIC, missing_only=True)
    watch = Watch()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.hostile.good_client", str(broker.port), TOPIC],
        cwd=CHECKOUT.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n", "the good client was not served at all"
            watch.resident_before = broker.resident_bytes()
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins here
            yield watch
            told, _ = client.communicate(timeout=90)
            assert client.returncode == 0, "the good client was not served to the end"
        finally:
            client.kill()
    answer = json.loads(told)
    watch.acknowledged = answer["acknowledged"]
    watch.slowest = [(ms, what) for ms, what in answer["slowest"]]
    watch.resident_peak = _peak(pid)
    watch.resident_after = _settled(broker, watch.resident_before + kept)
    print(watch)
    assert broker.running, broker.output()
    assert broker.pid == pid
    assert "Traceback" not in broker.output(10_000_000), broker.output()
    assert watch.longest_wait_ms <= LONGEST_WAIT_MS, str(watch)
    assert watch.resident_peak - watch.resident_before <= MOST_GROWTH, str(watch)
    assert watch.resident_after - watch.resident_before <= kept, str(watch)
    _nothing_lost(broker, watch.acknowledged)


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no peak")


def _settled(broker: BrokerProcess, enough: int) -> int:
    """Memory, when it is no more than `enough`, or after a while."""
    deadline = time.monotonic() + RETURN_S
    while (resident := broker.resident_bytes()) > enough and time.monotonic() < deadline:
        time.sleep(0.1)
    return resident


def _nothing_lost(broker: BrokerProcess, acknowledged: int) -> None:
    view = PartitionView(broker.log_dir / f"{TOPIC}-0")
    stored = [record.value for record in view.records() if record.offset < acknowledged]
    assert stored == [str(number).encode() for number in range(acknowledged)]
