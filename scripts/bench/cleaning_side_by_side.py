"""Cleans the same log by Apache Kafka's cleaner and by this one, in alternation.

    .venv/bin/python scripts/bench/cleaning_side_by_side.py [--megabytes 500] [--rounds 3]
        [--records 1000 100] [--codecs none lz4] [--keys 100000] [--ours]

Kafka's `Cleaner` runs in one JVM throughout, which is warm from its second run on; the first run is
shown and not counted. Ours runs in this process with one thread, as a child of the broker does.
Both have a map of 128 MiB and buffers of 512 KiB, the defaults. MB/s are bytes of the uncleaned log
by wall time. CPU seconds are those of Kafka's thread, without its garbage collector, and of our
process. Target: half of Kafka's MB/s.
"""

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.types import TopicPartition
from storage.cleaner.cleaning import clean_here, request_for
from storage.os_filesystem import OsFileSystem
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.kafka_cleaner import KafkaCleaner
from tests.support.log_differences import differences
from tests.support.manual_clock import ManualClock

TP = TopicPartition("bench", 0)
NOW = 1_700_000_000_000
SEGMENT = 100_000_000
MAP = 128 * 1024 * 1024
BATCH = 16 * 1024
CONFIG = TopicConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT)


def load(directory: Path):
    options = LoadOptions(config=CONFIG, clean=True)
    log = load_log(OsFileSystem(), ManualClock(NOW), str(directory), TP, options, random.Random(0))
    log.update_high_watermark(log.log_end_offset)
    return log


def fill(directory: Path, *, size: int, record: int, codec: CompressionType, keys: int) -> int:
    """Write batches of 16 KB before compression with random keys.

    Returns the bytes below the active segment.
    """
    directory.mkdir(parents=True)
    log = load(directory)
    rng = random.Random(1)
    values = [os.urandom(record // 2).hex().encode() for _ in range(1000)]
    each = max(1, BATCH // record)
    while log.size < size:
        rows = [
            (NOW, b"key-%09d" % rng.randrange(keys), rng.choice(values), ()) for _ in range(each)
        ]
        log.appender.append_as_follower(
            build_batch(rows, base_offset=log.log_end_offset, codec=codec)
        )
    log.roll()
    at_once(log.flush())
    at_once(log.close())
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def copied(source: Path, target: Path) -> None:
    """Copy the log; record files are linked, because nothing writes to those of closed segments."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix == ".log" and path.stat().st_size:
            os.link(path, target / path.name)
        else:
            shutil.copy2(path, target)


def kafkas(kafka: KafkaCleaner, directory: Path, end: int) -> tuple[float, float]:
    """Clean by Kafka's cleaner; return seconds and CPU seconds."""
    answer = kafka.clean(
        directory, CONFIG, now_ms=NOW, first_dirty=0, first_uncleanable=end, map_bytes=MAP
    )
    return answer["seconds"], answer["cpuSeconds"]


def ours(directory: Path) -> tuple[float, float]:
    log = load(directory)
    request = request_for(
        log,
        0,
        log.segments.active.base_offset,
        now_ms=NOW,
        map_bytes=MAP,
        io_buffer_bytes=512 * 1024,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    clean_here(log, request)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    at_once(log.close())
    for pending in log.store.take_pending():
        Path(pending.path).unlink()
    return spent


def compare(kafka: KafkaCleaner | None, where: Path, args: argparse.Namespace, what: tuple) -> None:
    record, codec = what
    source = where / "source" / "bench-0"
    size = fill(source, size=args.megabytes * 1_000_000, record=record, codec=codec, keys=args.keys)
    log = load(source)
    end = log.log_end_offset
    at_once(log.close())
    print(f"\n{size / 1e6:.0f} MB, {end} records of {record} bytes, {codec.name.lower()}")
    if kafka is None:
        for _ in range(args.rounds):
            copied(source, where / "ours" / "bench-0")
            wall, cpu = ours(where / "ours" / "bench-0")
            print(f"ours {size / 1e6 / wall:11.0f} MB/s {cpu:7.2f} CPU s", flush=True)
        shutil.rmtree(where / "source")
        return
    print(f"{'run':>5} {'Kafka MB/s':>11} {'CPU s':>7} {'ours MB/s':>11} {'CPU s':>7}  load")
    theirs, own = [], []
    for number in range(args.rounds + 1):
        copied(source, where / "kafka" / "bench-0")
        copied(source, where / "ours" / "bench-0")
        theirs.append(kafkas(kafka, where / "kafka" / "bench-0", end))
        own.append(ours(where / "ours" / "bench-0"))
        speeds = [size / 1e6 / seconds for seconds, _ in (theirs[-1], own[-1])]
        print(
            f"{number or 'cold':>5} {speeds[0]:11.0f} {theirs[-1][1]:7.2f} "
            f"{speeds[1]:11.0f} {own[-1][1]:7.2f}  {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    if wrong := differences(where / "kafka" / "bench-0", where / "ours" / "bench-0"):
        print("DIFFERENT:", *wrong, sep="\n  ")
    wall = [statistics.median(one[0] for one in runs[1:]) for runs in (theirs, own)]
    cpu = [statistics.median(one[1] for one in runs[1:]) for runs in (theirs, own)]
    print(f"ours / Kafka: {wall[0] / wall[1]:.2f} of its MB/s, {cpu[1] / cpu[0]:.2f} of its CPU")
    for name in ("source", "kafka", "ours"):
        shutil.rmtree(where / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, nargs="+", default=[1000, 100])
    parser.add_argument("--codecs", nargs="+", default=["none", "lz4"])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--ours", action="store_true", help="without Apache Kafka beside it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        beside = nullcontext() if args.ours else KafkaCleaner(where, "-Xmx2g", "-XX:+UseG1GC")
        with beside as kafka:
            for codec in args.codecs:
                for record in args.records:
                    compare(kafka, where, args, (record, CompressionType[codec.upper()]))


if __name__ == "__main__":
    main()
