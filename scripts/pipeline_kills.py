"""Kills archives, restores and the broker with -9, and then compares tables and topics.

    scripts/pipeline-kills --rounds 20                       archive to Parquet
    scripts/pipeline-kills --rounds 20 --format delta
    scripts/pipeline-kills --restore --rounds 20             a table back to a topic
    scripts/pipeline-kills --rounds 2 --seed 1               quick

Archive: a producer writes transactions without a pause and aborts about a fifth of them. An archive
(`--interval 0`) runs beside it. Each round kills the driver (Python and its JVM), the broker, or
both, a random time after the driver has begun to write, and starts again what was killed. At the
end an archive reads the rest, and the table is compared with the records that a `read_committed`
consumer reads: each record once, equal in key, value, timestamp and headers; none of an aborted
transaction. After each kill pyarrow also lists and reads a table of Parquet: it must not hold a
record twice.

Restore: a table is restored to a topic; each round kills driver, broker or both a random time after
the driver's first transaction. At the end each partition must hold its rows, in order.

The exit code is 1 if a comparison fails.
"""

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from tests.support.broker_process import BrokerProcess  # noqa: E402
from tests.support.server_process import ServerProcess  # noqa: E402
from tests.support.spark_files import spark_environment  # noqa: E402

TOPIC = "orders"
PARTITIONS = 4
QUICK_JVM = ("--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
START_S = 240
Row = tuple[int, int, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


class Differs(Exception):
    """A table or topic does not hold the expected records."""


class Driver(ServerProcess):
    """`pykafkalog pipeline …` in a process group of its own."""

    def __init__(self, directory: Path, words: list[str]) -> None:
        super().__init__(directory / "driver.out")
        self._words = [
            *(sys.executable, "-m", "pykafkalog", "pipeline", *words, *QUICK_JVM),
            *("--master", "local[2]", "--log-file", str(directory / "spark.log")),
        ]
        self._environment = spark_environment(directory)
        self.starts = 0

    def start(self) -> "Driver":
        self.starts += 1
        self.launch(self._words, directory=ROOT, environment=self._environment)
        return self

    def kill(self) -> None:
        self.kill_group()

    def finish(self, timeout_s: float) -> int:
        assert self.process is not None
        return self.process.wait(timeout_s)


class Load(threading.Thread):
    """Makes one transaction after the other, and aborts about a fifth. Survives broker kills."""

    def __init__(self, broker: BrokerProcess, seed: int, per_second: int) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._random = random.Random(seed)
        self._per_second = per_second
        self.stopping = threading.Event()
        self.committed = self.aborted = self.unknown = 0

    def run(self) -> None:
        producer, number = None, 0
        while not self.stopping.is_set():
            number += 1
            fate = "abort" if self._random.random() < 0.2 else "keep"
            try:
                producer = producer or self._producer()
                self._transaction(producer, number, fate)
            except KafkaException as error:
                self.unknown += 1
                if not self._recovered(producer, error):
                    producer = None
                time.sleep(0.2)

    def _producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._broker.bootstrap,
                "transactional.id": "load",
                "linger.ms": 5,
                "compression.type": "lz4",
                "log_level": 0,
            }
        )
        producer.init_transactions(10)
        return producer

    def _transaction(self, producer: Producer, number: int, fate: str) -> None:
        producer.begin_transaction()
        count = self._random.randint(1, 200)
        for part in range(count):
            key = f"{number}-{part}".encode() if part % 5 else None
            producer.produce(
                TOPIC,
                key=key,
                value=None if part % 11 == 10 else f"{fate} {number} {part} ".encode() * 8,
                partition=self._random.randrange(PARTITIONS),
                headers=[("n", str(part).encode()), ("fate", fate.encode())] if part % 3 else None,
            )
        if producer.flush(10):
            raise KafkaException("not all sent")
        if fate == "abort":
            producer.abort_transaction(10)
            self.aborted += count
        else:
            producer.commit_transaction(10)
            self.committed += count
        time.sleep(count / self._per_second)

    def _recovered(self, producer: Producer | None, error: KafkaException) -> bool:
        """Abort the transaction; return whether the producer can go on."""
        try:
            if producer is not None and error.args[0].txn_requires_abort():
                producer.abort_transaction(10)
                return True
        except (KafkaException, AttributeError):
            pass
        return False


def read_topic(bootstrap: str, topic: str) -> list[Row]:
    """All records that a read_committed consumer reads, to the end of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    ended: set[int] = set()
    rows: list[Row] = []
    while len(ended) < PARTITIONS:
        for message in consumer.consume(5000, 2):
            if message.error() is not None:
                ended.add(message.partition())
                continue
            rows.append(
                (
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    tuple(message.headers() or ()),
                )
            )
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def rows_of(batches: Iterator[dict[str, Any]]) -> list[Row]:
    found = []
    for row in batches:
        headers = tuple((one["key"], one["value"]) for one in row["headers"] or ())
        moment = round(row["timestamp"].timestamp() * 1000)
        found.append((row["partition"], row["offset"], row["key"], row["value"], moment, headers))
    return sorted(found, key=lambda row: row[:2])


def read_parquet(table: Path) -> list[Row]:
    """The rows of every file that a listing finds, as any reader would list it."""
    import pyarrow.dataset as ds

    names = ["partition", "offset", "key", "value", "timestamp", "headers"]
    if not table.exists():
        return []
    return rows_of(iter(ds.dataset(table, partitioning="hive").to_table(names).to_pylist()))


def read_by_spark(table: Path, table_format: str) -> list[Row]:
    """The rows of an Iceberg or Delta table, through its own reader."""
    from pipeline.archive.place import Place
    from pipeline.archive.tables.opening import requirements
    from pipeline.restore.reading import read_table
    from pipeline.session import end_jvm, start_session

    packages, settings = requirements(table_format, Place.of(str(table)))
    session = start_session("kills", master="local[2]", packages=packages, conf=settings)
    try:
        frame = read_table(session, str(table), table_format)
        arrow = frame.select(
            "partition", "offset", "key", "value", "timestamp", "headers"
        ).toArrow()
        return rows_of(iter(arrow.to_pylist()))
    finally:
        session.stop()
        end_jvm()


def read_lake(table: Path, table_format: str) -> list[Row]:
    if table_format == "parquet":
        return read_parquet(table)
    return read_by_spark(table, table_format)


def expect_equal(what: str, got: list[Any], wanted: list[Any]) -> None:
    if got == wanted:
        print(f"  holds: {what} ({len(got):,})", flush=True)
        return
    more, less = Counter(got) - Counter(wanted), Counter(wanted) - Counter(got)
    raise Differs(
        f"{what}: {len(got):,} instead of {len(wanted):,}; {sum(more.values()):,} too many, such as"
        f" {list(more)[:2]}, {sum(less.values()):,} missing, such as {list(less)[:2]}"
    )


def expect_once(rows: list[Row]) -> None:
    places = Counter(row[:2] for row in rows)
    twice = [place for place, count in places.items() if count > 1]
    if twice:
        raise Differs(f"{len(twice):,} records are there more than once, such as {twice[:3]}")
    aborted = [row[:2] for row in rows if row[3] is not None and row[3].startswith(b"abort")]
    if aborted:
        raise Differs(f"{len(aborted):,} records of aborted transactions, such as {aborted[:3]}")


class Rounds:
    """Kills driver, broker or both, and starts again what was killed."""

    def __init__(self, broker: BrokerProcess, driver: Driver, args: argparse.Namespace) -> None:
        self.broker, self.driver, self.args = broker, driver, args
        self.random = random.Random(args.seed)
        self.kills: Counter[str] = Counter()

    def run(self, at_work: Callable[[], bool], between: Callable[[], str]) -> None:
        """Kill in rounds, each a random time after `at_work` says that the driver writes.

        `between` checks and describes the state after a kill, for the round's line.
        """
        for number in range(1, self.args.rounds + 1):
            if not self.driver.running:
                self.driver.start()
            self._wait(at_work)
            time.sleep(self.random.uniform(0, self.args.longest))
            what = self.random.choice(("driver", "driver", "broker", "both"))
            if what in ("driver", "both"):
                self.driver.kill()
            if what in ("broker", "both"):
                self.broker.kill()
            said = between()
            if what in ("broker", "both"):
                time.sleep(self.random.uniform(0, 2))
                self.broker.start()
            self.kills[what] += 1
            print(f"round {number}: killed {what}; {said}", flush=True)

    def _wait(self, at_work: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while not at_work():
            if not self.driver.running:
                self.driver.start()
            if time.monotonic() > deadline:
                raise Differs(f"the driver did not get to work:\n{self.driver.output()}")
            time.sleep(0.05)


def archive(args: argparse.Namespace, directory: Path) -> None:
    table = directory / "lake" / TOPIC
    commits = directory / "lake" / f"_{TOPIC}.archive" / "checkpoint" / "offsets"
    with BrokerProcess(directory / "broker", {"log.segment.bytes": "1048576"}) as broker:
        make_topic(broker.bootstrap)
        words = ["archive", TOPIC, "--to", str(table), "--format", args.format]
        words += ["-b", broker.bootstrap, "--max-offsets", "20000"]
        compact = ["--compact", "--compact-each", "2"] if args.compact else []
        driver = Driver(directory, [*words, "--interval", "0", *compact])
        load = Load(broker, args.seed, args.per_second)
        load.start()
        rounds = Rounds(broker, driver, args)
        begun = -1

        def batches() -> int:
            names = [p.name for p in commits.glob("*")] if commits.exists() else []
            return max((int(name) for name in names if name.isdigit()), default=-1)

        def at_work() -> bool:
            """Whether a batch was begun since the last kill, by this driver or a surviving one."""
            return batches() > begun

        def between() -> str:
            nonlocal begun
            begun = batches()
            if args.format != "parquet":
                return f"batch {begun} begun"
            if args.compact and driver.running:  # it may delete listed files before they are read
                return f"batch {begun} begun"
            rows = read_parquet(table)
            expect_once(rows)
            return f"batch {begun} begun, {len(rows):,} records in the table, none twice"

        try:
            rounds.run(at_work, between)
        finally:
            driver.kill()
            load.stopping.set()
            load.join(60)
        print(f"kills: {dict(rounds.kills)}; starts of the driver: {driver.starts}")
        print(
            f"load: {load.committed:,} records committed, {load.aborted:,} aborted,"
            f" {load.unknown} transactions of unknown fate"
        )
        # Whatever the load left open is aborted by its successor.
        Load(broker, 0, 1)._producer()
        last = Driver(directory, [*words, "--available-now"])
        last.start()
        if last.finish(START_S * 2) != 0:
            raise Differs(f"the last archive failed:\n{last.output()}")
        wanted = read_topic(broker.bootstrap, TOPIC)
        rows = read_lake(table, args.format)
        expect_once(rows)
        expect_equal("the table holds each committed record once, in full", rows, wanted)
        if len(wanted) < load.committed:
            raise Differs(f"only {len(wanted):,} of {load.committed:,} committed are in the topic")


def restore(args: argparse.Namespace, directory: Path) -> None:
    table = directory / "lake" / TOPIC
    target = f"restored-{TOPIC}"
    with BrokerProcess(directory / "broker") as broker:
        make_topic(broker.bootstrap)
        load = Load(broker, args.seed, 1_000_000)
        load.start()
        while load.committed < args.records:
            time.sleep(0.1)
        load.stopping.set()
        load.join(60)
        first = Driver(directory, ["archive", TOPIC, "--to", str(table), "--available-now"])
        first._words += ["-b", broker.bootstrap]
        first.start()
        if first.finish(START_S) != 0:
            raise Differs(f"the archive failed:\n{first.output()}")
        words = ["restore", str(table), "--topic-prefix", "restored-", "-b", broker.bootstrap]
        driver = Driver(directory, [*words, "--records-per-transaction", "100"])
        rounds = Rounds(broker, driver, args)
        seen = -1

        def restored() -> int:
            """Bytes in the segments of the target topic."""
            files = (directory / "broker" / "kafka-logs").glob(f"{target}-*/*.log")
            return sum(file.stat().st_size for file in files)

        def at_work() -> bool:
            return restored() > max(seen, 0) or finished()

        def finished() -> bool:
            return driver.process is not None and driver.process.poll() == 0

        def between() -> str:
            nonlocal seen
            seen = restored()
            return f"{seen:,} bytes restored" + (" (it had finished)" if finished() else "")

        try:
            rounds.run(at_work, between)
        finally:
            driver.kill()
        print(f"kills: {dict(rounds.kills)}; starts of the driver: {driver.starts}")
        driver.start()
        if driver.finish(START_S * 2) != 0:
            raise Differs(f"the last restore failed:\n{driver.output()}")
        wanted = read_topic(broker.bootstrap, TOPIC)
        got = read_topic(broker.bootstrap, target)
        without_offset = [(row[0], *row[2:]) for row in got]
        expect_equal(
            "the topic holds each row once, in full, in order",
            without_offset,
            [(row[0], *row[2:]) for row in wanted],
        )


def make_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--format", default="parquet", choices=("parquet", "iceberg", "delta"))
    parser.add_argument("--restore", action="store_true")
    parser.add_argument("--compact", action="store_true", help="compact meanwhile, too")
    parser.add_argument("--records", type=int, default=200_000, help="of a restore")
    parser.add_argument("--per-second", type=int, default=2_000, help="of the load of an archive")
    parser.add_argument("--longest", type=float, default=5, help="seconds before a kill")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--directory", type=Path, help="kept (default: a new one, removed)")
    args = parser.parse_args()
    directory = args.directory or Path(tempfile.mkdtemp(prefix="pipeline-kills-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {args.seed}, {args.rounds} rounds, in {directory}", flush=True)
    started = time.monotonic()
    try:
        (restore if args.restore else archive)(args, directory)
    except Differs as difference:
        print(f"FAILS: {difference}")
        return 1
    if args.directory is None:
        shutil.rmtree(directory)
    print(f"All of it holds ({time.monotonic() - started:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
