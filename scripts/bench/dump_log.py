"""Compares reading a log without a broker with Kafka's DumpLogSegments on the same files.

    .venv/bin/python scripts/bench/dump_log.py [--megabytes 200] [--rounds 3]

Measures MB of log per second of `storage.reader` (records as values; record columns; batch columns)
and of `pykafkalog dump-log` shallow, deep and deep with contents: whole processes that write to
/dev/null, beside Kafka's tool with the same options. The start of each process is measured on a log
of one batch; "net" is without it. Processor time stands beside wall time, because it says more on a
machine that does other work. Three shapes of log: 1 KB records and 100-byte records in 16 KB
batches, and one 100-byte record a batch (the worst case).
"""

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from protocol.records.builder import build_batch
from storage.reader import PartitionView
from tests.support.kafka_jars import LOGGING, ROOT, TOOLS_VERSION, kafka_jars

NOW = 1_700_000_000_000
SHAPES = {  # name: (bytes of a value, records in a batch)
    "1 KB records, 16 KB batches": (1000, 16),
    "100 B records, 16 KB batches": (100, 150),
    "100 B records, one a batch": (100, 1),
}
DEPTHS = {
    "shallow": (),
    "deep": ("--deep-iteration",),
    "deep with contents": ("--print-data-log",),
}
JAVA = (
    *("java", "-Xmx1g", *LOGGING, "-cp", kafka_jars(TOOLS_VERSION)),
    "org.apache.kafka.tools.DumpLogSegments",
)
OURS = (sys.executable, "-m", "tools", "dump-log")


def fill(directory: Path, megabytes: float, value: int, count: int) -> Path:
    """Write one segment of this shape; return its partition directory."""
    directory.mkdir()
    rows = [(NOW + at, b"key%d" % at, b"x" * value, ()) for at in range(count)]
    batch = bytearray(build_batch(rows))
    path = directory / f"{0:020}.log"
    with path.open("wb") as file:
        for at in range(max(1, int(megabytes * 1e6) // len(batch))):
            struct.pack_into(">q", batch, 0, at * count)
            file.write(batch)
    return path


class Took(NamedTuple):
    """Seconds by wall time and by processor time."""

    wall: float
    cpu: float

    def __sub__(self, other: "Took") -> "Took":
        return Took(self.wall - other.wall, self.cpu - other.cpu)


def took(run: Callable[[], object], rounds: int) -> Took:
    """Median times of `run`, of this process and of those that it starts."""
    walls, cpus = [], []
    for _ in range(rounds):
        before, begin = os.times(), time.perf_counter()
        run()
        walls.append(time.perf_counter() - begin)
        cpus.append(sum(os.times()[:4]) - sum(before[:4]))
    return Took(statistics.median(walls), statistics.median(cpus))


def process(command: tuple[str, ...]) -> None:
    """Run the command to its end, its output to /dev/null."""
    with Path("/dev/null").open("w") as nowhere:
        subprocess.run(command, cwd=ROOT, stdout=nowhere, stderr=nowhere, check=True)


def rate(megabytes: float, time_: Took) -> str:
    """MB/s by wall and by processor time."""
    wall, cpu = (f"{megabytes / part:5.0f}" if part > 0.02 else "    -" for part in time_)
    return f"{wall} MB/s (cpu {cpu})"


def reader(view: PartitionView) -> dict[str, Callable[[], object]]:
    """The ways to read with `storage.reader`, by name."""
    return {
        "records as values": lambda: sum(1 for _ in view.records()),
        "record columns": lambda: sum(
            len(chunk.columns["offset"]) for chunk in view.iter_columns()
        ),
        "batch columns": lambda: len(view.batch_columns()["position"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-java", action="store_true", help="only ours")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        tiny = fill(root / "tiny-0", 0, 100, 1)
        tools = {"ours": OURS} if args.no_java else {"ours": OURS, "kafka": JAVA}
        starts = {}
        for tool, command in tools.items():
            words = (*command, "--files", str(tiny), "--print-data-log")
            starts[tool] = took(lambda words=words: process(words), args.rounds)
        told = [f"{tool} {it.wall:.2f} s (cpu {it.cpu:.2f})" for tool, it in starts.items()]
        print("start: " + ", ".join(told))
        for number, (shape, (value, count)) in enumerate(SHAPES.items()):
            path = fill(root / f"bench-{number}", args.megabytes, value, count)
            size = path.stat().st_size / 1e6
            print(f"\n{shape} ({size:.0f} MB)")
            for way, run in reader(PartitionView(str(path.parent))).items():
                print(f"  storage.reader, {way:18} {rate(size, took(run, args.rounds))}")
            for depth, options in DEPTHS.items():
                told = []
                for tool, command in tools.items():
                    words = (*command, "--files", str(path), *options)
                    it = took(lambda words=words: process(words), args.rounds)
                    told.append(f"{tool} {it.wall:6.2f} s, net {rate(size, it - starts[tool])}")
                print(f"  dump-log {depth:18}  " + "   ".join(told))
            path.unlink()


if __name__ == "__main__":
    main()
