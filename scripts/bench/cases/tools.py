"""Kafka's own performance tools: produce, consume from memory and from the disk, codecs.

The client shares the machine with the broker, so MB/s is bounded by the client; CPU is not.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sides import Side

from cases import Bench, Figures, Measure, case
from tests.support.kafka_jars import java

MB = 1024 * 1024


def produced(
    side: Side,
    topic: str,
    size: int,
    count: int,
    *words: str,
    at: str | None = None,
    options: Sequence[str] = (),
) -> Figures:
    """One run of the producer tool; `at` is another listener, `options` are the JVM's."""
    before = side.cpu_seconds()
    told = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(count), "--record-size", str(size)),
        *("--throughput", "-1", "--bootstrap-server", at or side.bootstrap),
        *words,
        timeout=600,
        options=options,
    ).stdout.splitlines()[-1]
    cpu = side.cpu_seconds() - before
    rate, p99 = (re.search(f"([\\d.]+) {what}", told) for what in ("MB/sec", "ms 99th"))
    if rate is None or p99 is None:
        raise RuntimeError(f"the tool says: {told}")
    return {
        "produce MB/s": float(rate[1]),
        "produce CPU s/GB": cpu / (count * size / 1e9),
        "produce p99 ms": float(p99[1]),
    }


def consumed(
    side: Side,
    topic: str,
    size: int,
    count: int,
    what: str,
    *words: str,
    at: str | None = None,
    options: Sequence[str] = (),
) -> Figures:
    """One run of the consumer tool; MB/s are those of the time after joining the group."""
    before = side.cpu_seconds()
    lines = java(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--topic", topic, "--num-records", str(count)),
        *("--bootstrap-server", at or side.bootstrap, "--timeout", "60000"),
        *words,
        timeout=600,
        options=options,
    ).stdout.splitlines()
    names, values = ([part.strip() for part in line.split(",")] for line in lines[-2:])
    row = dict(zip(names, values, strict=True))
    cpu = side.cpu_seconds() - before
    return {
        f"{what} MB/s": float(row["fetch.MB.sec"]),
        f"{what} CPU s/GB": cpu / (count * size / 1e9),
    }


def perf(bench: Bench, side: Side, size: int, batch: int, codec: str) -> Iterator[Measure]:
    """Four partitions, acks=all, idempotent, linger 5 ms; then all is consumed from memory."""
    count = bench.megabytes * MB // size
    properties = (f"batch.size={batch}", "linger.ms=5", f"compression.type={codec}")

    def measure() -> Figures:
        with side.topics(1, 4) as (topic,):
            told = produced(side, topic, size, count, "--command-property", *properties)
            return {**told, **consumed(side, topic, size, count, "consume")}

    yield measure


def transactional(bench: Bench, side: Side, size: int) -> Iterator[Measure]:
    """One transactional producer, with transactions of 100 ms."""
    count = bench.megabytes * MB // size

    def measure() -> Figures:
        with side.topics(1, 4) as (topic,):
            words = ("--transaction-duration-ms", "100", "--transactional-id", topic)
            return produced(side, topic, size, count, *words)

    yield measure


def cold(bench: Bench, side: Side, size: int) -> Iterator[Measure]:
    """Consume what is on the disk and not in the page cache."""
    count = bench.megabytes * MB // size
    with side.topics(1, 4) as (topic,):
        produced(side, topic, size, count, "--command-property", "batch.size=262144")

        def measure() -> Figures:
            assert not hasattr(side.broker, "emptied")
            for path in Path(side.broker.log_dir).glob(f"{topic}-*/*.log"):
                file = os.open(path, os.O_RDONLY)
                os.fsync(file)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)
            return consumed(side, topic, size, count, "cold consume")

        yield measure


CASES = {
    **{
        f"tools/{size} B x {batch} KB": case(perf, size, batch * 1024, "none")
        for size in (100, 1024)
        for batch in (16, 256)
    },
    **{
        f"tools/1024 B x 16 KB, {codec}": case(perf, 1024, 16384, codec)
        for codec in ("gzip", "snappy", "lz4", "zstd")
    },
    "tools/1024 B, in transactions": case(transactional, 1024),
    "tools/1024 B, cold": case(cold, 1024),
}
