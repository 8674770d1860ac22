"""Measures one cleaner child: MB/s of CPU time in the functions of `storage.cleaner.work`.

    .venv/bin/python scripts/bench/cleaning.py [--mb 64] [--only 1000] [--profile]

Records of 100 B and 1 KB, batches of 16 KB and of one record, plain and compressed; each key comes
ten times on average. The log is read once for the map and once for the rewrite; the number is the
log's megabytes by the time of both, as Kafka's `log-cleaner` logs it per cleaning.
"""

import argparse
import cProfile
import pstats
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Callable

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.types import TopicPartition
from storage.cleaner.cleaning import clean, request_for
from storage.log.log import Log
from storage.os_filesystem import OsFileSystem
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.manual_clock import ManualClock

BATCH = 16 * 1024
SEGMENT = 64 << 20


def filled(directory: str, size: int, record: int, per_batch: int, codec: CompressionType) -> Log:
    """Make a log of about `size` uncompressed bytes."""
    chance = random.Random(1)
    fs = OsFileSystem()
    config = TopicConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT)
    options = LoadOptions(config=config, clean=True, recovery_point=0, log_start_offset=0)
    partition = TopicPartition("t", 0)
    clock = ManualClock()
    log = load_log(fs, clock, directory, partition, options, chance)
    records = size // record
    keys = max(records // 10, 1)
    words = [b"%016x" % chance.getrandbits(64) for _ in range(1000)]
    length = record - 24
    now = clock.wall_ms()
    for at in range(0, records, per_batch):
        batch = [
            (
                now + (at + n) // 100,
                b"key-%010d" % chance.randrange(keys),
                b"".join(chance.choices(words, k=length // 16 + 1))[:length],
                (),
            )
            for n in range(min(per_batch, records - at))
        ]
        log.append_as_leader(bytearray(build_batch(batch, codec=codec)), leader_epoch=0)
    log.update_high_watermark(log.log_end_offset)
    log.roll()
    return log


def measure(size: int, record: int, per_batch: int, codec: CompressionType) -> str:
    """Clean one such log; return the line to print."""
    directory = tempfile.mkdtemp(prefix="cleaning-")
    try:
        log = filled(directory, size, record, per_batch, codec)
        stored = log.size
        request = request_for(
            log,
            0,
            log.segments.active.base_offset,
            now_ms=ManualClock().wall_ms(),
            map_bytes=128 << 20,
        )
        times: dict[str, float] = {}
        state: dict[str, Any] = {}

        async def child(function: Callable[..., Any], *args: Any) -> Any:
            before = time.process_time()
            result = function(state, *args)
            name = function.__name__
            times[name] = times.get(name, 0.0) + time.process_time() - before
            return result

        stats = at_once(clean(log, request, child))
        at_once(log.close())
        mb = size / 1e6
        mapping, rewriting = times["map_some"], times["rewrite_some"]
        return (
            f"{record:5} B  {per_batch:4} a batch  {codec.name:6}  "
            f"{mb / (mapping + rewriting):7.1f} MB/s  (map {mb / mapping:7.1f}, rewrite "
            f"{mb / rewriting:7.1f}; stored {stored / 1e6:.0f} MB, kept "
            f"{stats.messages_written}/{stats.messages_read} records)"
        )
    finally:
        shutil.rmtree(directory)


def main() -> None:
    """Measure every combination that the arguments leave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("--only", type=int, default=0)
    parser.add_argument("--codec", default="")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    profile = cProfile.Profile()
    for record in (1000, 100):
        for per_batch in (max(BATCH // record, 1), 1):
            for codec in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
                if chosen.only not in (0, record) or chosen.codec.upper() not in ("", codec.name):
                    continue
                if chosen.profile:
                    profile.enable()
                print(measure(chosen.mb << 20, record, per_batch, codec), flush=True)
                profile.disable()
    if chosen.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
