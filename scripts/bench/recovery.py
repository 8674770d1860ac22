"""Compares the recovery of an unclean partition with Apache Kafka's of the same directory.

    .venv/bin/python scripts/bench/recovery.py [--megabytes 1000] [--rounds 3]

One partition of 1 KB records in 16 KB batches lies in a log directory without a clean-shutdown
marker, checkpoints or indexes. Both brokers open copies of it in turn, in the same run; the times
are those that each logs for loading. Java's first round includes its warming up, as after every
real crash. Target: at least as fast as Kafka.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from protocol.records.builder import build_batch
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess

TOPIC = "bench"
NOW = 1_700_000_000_000
LOG4J = """
rootLogger.level = INFO
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = [%d] %p %m (%c)%n
"""


def one_batch() -> bytes:
    """16 records of about 1 KB."""
    return build_batch([(NOW, None, os.urandom(1000), ()) for _ in range(16)])


def fill(path: Path, megabytes: int) -> int:
    """Write a record file of this size, one segment; return its number of batches."""
    batch = bytearray(one_batch())
    count = megabytes * 1_000_000 // len(batch)
    with path.open("wb") as file:
        for at in range(count):
            struct.pack_into(">q", batch, 0, at * 16)
            struct.pack_into(">i", batch, 12, 0)
            file.write(batch)
    return count


def kafka_directory(where: Path) -> ApacheKafka:
    """Make a log directory of Apache Kafka with an empty topic, left as after kill -9."""
    where.mkdir()
    loud = where / "log4j2.properties"
    loud.write_text(LOG4J)
    kafka = ApacheKafka(
        where,
        {"log.segment.bytes": "2000000000"},
        java_options=("-XX:+UseG1GC", f"-Dlog4j2.configurationFile={loud}"),
    )
    kafka.start()
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    while not (kafka.log_dir / f"{TOPIC}-0" / "partition.metadata").exists():
        time.sleep(0.1)
    kafka.kill()
    return kafka


def reset(partition: Path, master: Path) -> None:
    """Restore the unclean state: the records, and no other file."""
    for path in partition.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    os.link(master, partition / f"{0:020d}.log")
    marker = partition.parent / ".kafka_cleanshutdown"
    marker.unlink(missing_ok=True)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (partition.parent / name).unlink(missing_ok=True)


def kafka_seconds(kafka: ApacheKafka) -> float:
    """Seconds that Kafka took to load the partition, from its log."""
    (kafka.directory / "kafka.out").unlink(missing_ok=True)
    kafka.start()
    told = (kafka.directory / "kafka.out").read_text()
    kafka.kill()
    found = re.findall(rf"Completed load of Log\(dir=\S*{TOPIC}-0.* in (\d+)\s?ms", told)
    found = (
        found
        or re.findall(rf"{TOPIC}-0.*\((\d+)\s?ms", told)
        or re.findall(r"Loaded \d+ logs in (\d+)\s?ms", told)
    )
    assert found, told[-3000:]
    return int(found[-1]) / 1000


def our_seconds(directory: Path, source: Path, master: Path) -> float:
    """Seconds that the real daemon took on a copy of Kafka's directory, from its log."""
    logs = directory / "kafka-logs"
    shutil.rmtree(directory, ignore_errors=True)
    (logs / f"{TOPIC}-0").mkdir(parents=True)
    shutil.copy(source / "meta.properties", logs / "meta.properties")
    shutil.copy(source / f"{TOPIC}-0" / "partition.metadata", logs / f"{TOPIC}-0")
    reset(logs / f"{TOPIC}-0", master)
    broker = BrokerProcess(directory, {"log.segment.bytes": "2000000000"})
    broker.start(timeout_s=120)
    told = broker.output(100_000)
    broker.kill()
    return int(re.findall(r"Loaded \d+ logs in (\d+)ms", told)[-1]) / 1000


def check_same(ours: Path, theirs: Path) -> None:
    """Assert that both kept the same bytes of records, or the numbers mean nothing."""
    for name in (f"{0:020d}.log",):
        a, b = ours / name, theirs / name
        assert a.stat().st_size == b.stat().st_size, (a, b)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        kafka = kafka_directory(where / "kafka")
        master = where / "master.log"
        batches = fill(master, args.megabytes)
        subprocess.run(["cat", str(master)], stdout=subprocess.DEVNULL, check=True)  # page cache
        print(f"{args.megabytes} MB, {batches} batches; seconds to load after an unclean stop")
        print(f"{'round':>5} {'Apache Kafka':>13} {'pykafkalog':>11}")
        best = [1e9, 1e9]
        for number in range(1, args.rounds + 1):
            reset(kafka.log_dir / f"{TOPIC}-0", master)
            theirs = kafka_seconds(kafka)
            ours = our_seconds(where / "ours", kafka.log_dir, master)
            check_same(where / "ours" / "kafka-logs" / f"{TOPIC}-0", kafka.log_dir / f"{TOPIC}-0")
            best = [min(best[0], theirs), min(best[1], ours)]
            print(f"{number:5} {theirs:13.2f} {ours:11.2f}", flush=True)
            time.sleep(0.5)
        verdict = "at least as fast" if best[1] <= best[0] else "SLOWER"
        print(f"best  {best[0]:13.2f} {best[1]:11.2f}   {verdict}")


if __name__ == "__main__":
    main()
