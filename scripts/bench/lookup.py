"""Looking up records by offset and by time, in logs of 0.1, 1 and 10 GB: flat in their size?

    .venv/bin/python scripts/bench/lookup.py [--gigabytes 10] [--lookups 20000]

The logs are sparse files of 1 GB segments: every 64 KB has a real batch with entries in both
indexes, then the header of a batch that fills the space and is never opened. Lookups are random;
the first pass, which opens segments and maps indexes, is reported apart.
"""

import argparse
import json
import random
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.log.results import FetchIsolation
from storage.os_filesystem import OsFileSystem
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once

SEGMENT = 1_000_000_000
STRIDE = 65_536
RECORDS = 10
TOLERANCE = 1.5
START_MS = 1_700_000_000_000


class Clock:
    """The machine's clock."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def pair(first: int) -> tuple[bytes, bytes]:
    """Return a batch of ten records from offset `first` on, a millisecond apart, and a filler."""
    real = bytearray(
        build_batch(
            [(START_MS + first + at, None, b"v" * 80, ()) for at in range(RECORDS)],
            base_offset=first,
        )
    )
    filler = bytearray(build_batch([(START_MS + first + RECORDS, None, b"", ())]))[:61]
    struct.pack_into(">qi", filler, 0, first + RECORDS, STRIDE - len(real) - 12)
    return bytes(real), bytes(filler)


def build(directory: Path, size: int) -> int:
    """Write the segments; return the log end offset."""
    directory.mkdir()
    per_pair, offset = RECORDS + 1, 0
    for base_position in range(0, size, SEGMENT):
        base, pairs = offset, min(SEGMENT, size - base_position) // STRIDE
        offset_index, time_index = bytearray(), bytearray()
        stem = directory / f"{base:020d}"
        with stem.with_suffix(".log").open("wb") as file:
            for at in range(pairs):
                real, filler = pair(offset)
                file.seek(at * STRIDE)
                file.write(real + filler)
                last = offset + RECORDS - 1 - base
                offset_index += struct.pack(">ii", last, at * STRIDE)
                time_index += struct.pack(">qi", START_MS + base + last, last)
                offset += per_pair
            # A roll adds an entry with the greatest timestamp.
            time_index += struct.pack(">qi", START_MS + offset - 1, offset - 1 - base)
            file.truncate(pairs * STRIDE)
        # The first batch of a segment has no entry.
        stem.with_suffix(".index").write_bytes(offset_index[8:])
        stem.with_suffix(".timeindex").write_bytes(time_index[12:])
    return offset


def opened(directory: Path) -> Log:
    options = LoadOptions(config=TopicConfig(), clean=True)
    tp = TopicPartition("sparse", 0)
    log = load_log(OsFileSystem(), Clock(), str(directory), tp, options, Random())
    log.update_high_watermark(log.log_end_offset)
    return log


def by_offset(log: Log, target: int) -> None:
    assert log.read(target, 1, FetchIsolation.LOG_END).records


def by_time(log: Log, target: int) -> None:
    found = at_once(log.times.search(START_MS + target))
    assert found is not None and found.offset == target, (found, target)


def micros(log: Log, targets: list[int], action: Callable[[Log, int], None]) -> float:
    begin = time.perf_counter()
    for target in targets:
        action(log, target)
    return (time.perf_counter() - begin) / len(targets) * 1e6


def measure(where: Path, gigabytes: float, lookups: int) -> dict[str, float]:
    directory = where / f"sparse-{gigabytes}"
    end = build(directory, int(gigabytes * 1e9))
    log = opened(directory)
    assert log.log_end_offset == end
    pairs = end // (RECORDS + 1)
    chosen = [
        random.randrange(pairs) * (RECORDS + 1) + random.randrange(RECORDS) for _ in range(lookups)
    ]
    first = micros(log, chosen[:1000], by_offset)
    offset = min(micros(log, chosen, by_offset) for _ in range(3))
    micros(log, chosen[:1000], by_time)
    by = min(micros(log, chosen[: lookups // 4], by_time) for _ in range(3))
    print(
        f"{gigabytes:6} GB {len(log.segments):4} segments  first {first:8.1f}"
        f"   by offset {offset:7.1f}   by time {by:7.1f}   microseconds each",
        flush=True,
    )
    log.release()
    shutil.rmtree(directory)
    return {"offset": offset, "time": by}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--lookups", type=int, default=20_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        sizes = [args.gigabytes / 100, args.gigabytes / 10, args.gigabytes]
        small, _, large = (measure(Path(name), size, args.lookups) for size in sizes)
    growth = {kind: round(large[kind] / small[kind], 2) for kind in small}
    verdict = "flat" if max(growth.values()) <= TOLERANCE else "GROWS"
    print(f"{verdict}: a log 100 times as large takes {json.dumps(growth)} times as long")


if __name__ == "__main__":
    main()
