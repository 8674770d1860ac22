"""Compares reading a topic from its files and from a broker: rows and bytes a second.

    .venv/bin/python scripts/bench/direct_reader.py                    # into Arrow, no Spark
    .venv/bin/python scripts/bench/direct_reader.py --spark            # and Spark's kafka source
    .venv/bin/python scripts/bench/direct_reader.py --records 100000   # the quick form

A broker of this checkout is filled with records of 1 KB (half of each random), once without a codec
and once with lz4. Every way to read then reads them in alternation, `--rounds` times. Into Arrow:
CPU seconds of this process (all columns, and `value` only). Spark, local[2]: wall and CPU seconds
of its processes and of the broker; the query sums the lengths of the values. The first round is not
shown.
"""

import argparse
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from storage.reader.arrow import read_task
from storage.reader.scan import ScanRequest, plan
from tests.support.broker_process import BrokerProcess

CODECS = ("none", "lz4")
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "200"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--directory", type=Path, help="for the broker (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = args.directory or Path(temporary)
        with BrokerProcess(directory, SETTINGS) as broker:
            for codec in CODECS:
                fill(broker, codec, args.records)
            plans = {codec: planned(broker, codec, args.records) for codec in CODECS}
            into_arrow(plans, args.rounds)
            one_hour(broker, args.records)
            if args.spark:
                in_spark(broker, args.records, args.rounds)


def fill(broker: BrokerProcess, codec: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {"segment.bytes": str(128 << 20), "retention.ms": "-1"}
    admin.create_topics([NewTopic(codec, 1, config=config)])[codec].result(30)
    random = Random(1)
    values = [random.randbytes(480 + n) + b"text " * 100 for n in range(40)]
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": codec,
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
        }
    )
    # A day's worth of records.
    begin, step = 1_700_000_000_000, 86_400_000 / records
    for number in range(records):
        while True:
            try:
                producer.produce(
                    codec,
                    values[number % 40],
                    key=b"%d" % (number % 1000),
                    timestamp=begin + int(number * step),
                )
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def planned(broker: BrokerProcess, topic: str, records: int) -> Any:
    limit = time.monotonic() + 60
    while True:
        found = plan(ScanRequest(directories=(str(broker.log_dir),), topics=(topic,)))
        if found.partitions[0].end_offset == records:
            return found
        assert time.monotonic() < limit, found.partitions
        time.sleep(0.3)


def into_arrow(plans: dict[str, Any], rounds: int) -> None:
    print(f"{'codec':6}{'columns':>9}{'rows/CPU s':>14}{'value MB/CPU s':>16}{'log MB/CPU s':>14}")
    for turn in range(rounds + 1):
        for codec, found in plans.items():
            for name, columns in (("all", None), ("value", ["value"])):
                begin = time.process_time()
                rows = size = 0
                for task in found.tasks:
                    for batch in read_task(task, columns):
                        rows += batch.num_rows
                        size += batch["value"].nbytes
                spent = time.process_time() - begin
                if not turn:
                    continue
                print(
                    f"{codec:6}{name:>9}{rows / spent:14,.0f}{size / spent / 1e6:16,.0f}"
                    f"{found.bytes / spent / 1e6:14,.0f}",
                    flush=True,
                )


def one_hour(broker: BrokerProcess, records: int) -> None:
    begin = 1_700_000_000_000 + 10 * 3_600_000
    hour = (begin, begin + 3_600_000)
    for codec in CODECS:
        request = ScanRequest(
            directories=(str(broker.log_dir),), topics=(codec,), timestamps=hour, lateness_ms=0
        )
        found = plan(request)
        rows = sum(b.num_rows for task in found.tasks for b in read_task(task, ["offset"]))
        whole = found.partitions[0].bytes
        print(
            f"one hour of a day, {codec}: {rows:,} of {records:,} rows, "
            f"{found.bytes / 1e6:,.1f} of {whole / 1e6:,.1f} MB"
        )


def in_spark(broker: BrokerProcess, records: int, rounds: int) -> None:
    from pipeline.session import KAFKA, start_session
    from pipeline.source import register

    spark = start_session(
        "bench", master="local[2]", packages=(KAFKA,), conf={"spark.driver.memory": "2g"}
    )
    register(spark)

    def frame(source: str, topic: str) -> Any:
        reader = spark.read.format(source).option("subscribe", topic)
        if source == "kafka":
            reader = reader.option("kafka.bootstrap.servers", broker.bootstrap)
        else:
            reader = reader.option("log.dirs", str(broker.log_dir))
        return reader.load().selectExpr("count(*)", "sum(length(value))")

    print(
        f"{'codec':6}{'source':>12}{'wall s':>9}{'rows/s':>12}"
        f"{'Spark CPU s':>13}{'broker CPU s':>14}"
    )
    for turn in range(rounds + 1):
        for codec in CODECS:
            for source in ("kafka", "pykafkalog"):
                own, other = cpu_of_children(broker.pid), cpu_of(broker.pid)
                begin = time.monotonic()
                assert frame(source, codec).first()[0] == records
                wall = time.monotonic() - begin
                if turn:  # the first round only warms up the JVM
                    own, other = cpu_of_children(broker.pid) - own, cpu_of(broker.pid) - other
                    print(
                        f"{codec:6}{source:>12}{wall:9.2f}{records / wall:12,.0f}"
                        f"{own:13.2f}{other:14.2f}",
                        flush=True,
                    )
    spark.stop()


def cpu_of(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def cpu_of_children(besides: int) -> float:
    """CPU seconds of the JVM and its Python workers, including workers that have ended."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        if process.pid != besides:
            try:
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
            except psutil.Error:
                continue
    return total


if __name__ == "__main__":
    main()
