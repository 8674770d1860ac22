"""Topics to Parquet, Iceberg and Delta and back, by one Spark session with all three in it."""

import argparse
import json
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipeline.archive import command
from pipeline.archive.archiving import Archiving, Parts, Source
from pipeline.archive.compacting import settled
from pipeline.archive.place import Place
from pipeline.archive.registry import Registry
from pipeline.archive.tables import delta, parquet
from pipeline.archive.tables.opening import open_table, requirements
from pipeline.archive.tables.parquet import ParquetTable
from pipeline.archive.values import Decoding, infer_json_schema
from pipeline.archive.written import Written
from pipeline.errors import PipelineError
from pipeline.failures import as_sentence
from pipeline.restore.job import SendJob
from pipeline.restore.reading import Columns, read_table, records
from pipeline.restore.restoring import extents, send
from pipeline.restore.topics import Targets
from pipeline.session import AVRO, DELTA, ICEBERG, KAFKA, end_jvm, start_session

FORMATS = ("parquet", "iceberg", "delta")
DAY_MS = 86_400_000
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def spark(lake: Path) -> Iterator[SparkSession]:
    _, of_iceberg = requirements("iceberg", Place.of(str(lake / "any")))
    extensions = "spark.sql.extensions"
    session = start_session(
        "test-lake",
        master="local[2]",
        packages=(KAFKA, AVRO, ICEBERG, DELTA),
        conf={
            **of_iceberg,
            **delta.SETTINGS,
            # The last one parses first, and Iceberg asks for its own parser.
            extensions: f"{delta.SETTINGS[extensions]},{of_iceberg[extensions]}",
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield session
    session.stop()
    end_jvm()


@pytest.fixture
def place(lake: Path, topic: str) -> Place:
    return Place.of(str(lake / topic.replace("-", "_")))


def create(bootstrap: str, topic: str, partitions: int = 2) -> None:
    """A topic whose old records stay."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(30)


def produce(bootstrap: str, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, **more)
    assert producer.flush(30) == 0


def transactions(bootstrap: str, topic: str, count: int) -> None:
    """Each third is aborted; records go to two partitions, three days, with and without headers."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id", "linger.ms": 5}
    )
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        aborted = number % 3 == 1
        for part in range(6):
            producer.produce(
                topic,
                None if part == 5 else f"{'no' if aborted else 'yes'} {number} {part}".encode(),
                key=None if part == 4 else f"{number}".encode(),
                partition=part % 2,
                timestamp=FIRST_MS + (number % 3) * DAY_MS + part,
                headers=[("h", b"\x00"), ("h", None)] if part % 2 else None,
            )
        assert producer.flush(30) == 0
        if aborted:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


Row = tuple[Any, ...]


def read_topic(bootstrap: str, topic: str, partitions: int = 2) -> list[Row]:
    """(partition, offset, key, value, timestamp, headers) of a read_committed consumer."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "oracle",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)]
    )
    rows, ended = [], set()
    while len(ended) < partitions:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            ended.add(message.partition())
            continue
        headers = message.headers()
        rows.append(
            (
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.timestamp()[1],
                None if headers is None else [tuple(header) for header in headers],
            )
        )
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def read_lake(spark: SparkSession, place: Place, table_format: str) -> list[Row]:
    rows = []
    for row in read_table(spark, place.table, table_format).toArrow().to_pylist():
        headers = row["headers"]
        rows.append(
            (
                row["partition"],
                row["offset"],
                row["key"],
                row["value"],
                round(row["timestamp"].timestamp() * 1000),
                None if headers is None else [(one["key"], one["value"]) for one in headers],
            )
        )
        assert str(row["date"]) == row["timestamp"].date().isoformat()
    return sorted(rows, key=lambda row: row[:2])


def archive(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    place: Place,
    table_format: str = "parquet",
    *,
    decoding: Decoding | None = None,
    dead: Place | None = None,
    max_offsets: int = 40,
) -> Written:
    """What there is now."""
    parts = Parts(
        Source(bootstrap, (topic,), max_offsets=max_offsets),
        place,
        open_table(table_format, spark, place),
        decoding or Decoding(),
        None if dead is None else ParquetTable(spark, dead),
    )
    archiving = Archiving(spark, parts)
    archiving.run(None)
    return archiving.written


def commits(place: Place) -> list[Path]:
    found = Path(place.checkpoint, "commits").glob("[0-9]*")
    return sorted(found, key=lambda path: int(path.name))


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_archive_has_each_committed_record_once_also_of_a_batch_given_twice(
    spark: SparkSession, bootstrap: str, topic: str, place: Place, table_format: str
) -> None:
    create(bootstrap, topic)
    transactions(bootstrap, topic, 15)
    wanted = read_topic(bootstrap, topic)
    first = archive(spark, bootstrap, topic, place, table_format)
    assert first.records == len(wanted) == 60
    assert first.batches > 1
    assert read_lake(spark, place, table_format) == wanted

    # The driver died between the table's commit and the checkpoint's.
    commits(place)[-1].unlink()
    assert archive(spark, bootstrap, topic, place, table_format).batches == 1
    assert read_lake(spark, place, table_format) == wanted

    # It died again, and there was more to read.
    commits(place)[-1].unlink()
    produce(bootstrap, topic, [b"more"] * 10, partition=1)
    archive(spark, bootstrap, topic, place, table_format)
    wanted = read_topic(bootstrap, topic)
    assert read_lake(spark, place, table_format) == wanted

    writer, committed = settled(spark, place)
    done = open_table(table_format, spark, place).compact(1_000_000, committed, writer)
    assert done.files_after < done.files_before
    assert done.files_after == 3  # of each day one: two of them, and today
    assert read_lake(spark, place, table_format) == wanted


def test_a_batch_of_parquet_that_was_cut_off_is_completed(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    """The driver died between two renames; a compaction came before the batch was given again."""
    create(bootstrap, topic)
    transactions(bootstrap, topic, 6)
    wanted = read_topic(bootstrap, topic)
    archive(spark, bootstrap, topic, place)
    last = commits(place)[-1]
    files = sorted(Path(place.table).rglob(f"*-{int(last.name):010d}-*.parquet"))
    assert len(files) > 1
    last.unlink()
    files[0].unlink()
    produce(bootstrap, topic, [b"more"])  # without it there would be nothing to compact
    writer, committed = settled(spark, place)
    ParquetTable(spark, place).compact(1_000_000, committed, writer)
    archive(spark, bootstrap, topic, place)
    assert read_lake(spark, place, "parquet")[: len(wanted)] != []
    assert read_lake(spark, place, "parquet") == read_topic(bootstrap, topic)


@pytest.mark.parametrize("moment", ["before the exchange", "after it"])
def test_a_compaction_of_parquet_that_was_killed_changes_nothing_for_readers(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    create(bootstrap, topic)
    transactions(bootstrap, topic, 6)
    archive(spark, bootstrap, topic, place)
    wanted = read_topic(bootstrap, topic)
    table = ParquetTable(spark, place)
    writer, committed = settled(spark, place)

    class Killed(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        name = "_exchange" if moment == "before the exchange" else "_remove"
        patched.setattr(parquet, name, die)
        with pytest.raises(Killed):
            table.compact(1_000_000, committed, writer)
    assert read_lake(spark, place, "parquet") == wanted
    done = table.compact(1_000_000, committed, writer)
    assert done.files_after == 2
    assert read_lake(spark, place, "parquet") == wanted
    produce(bootstrap, topic, [b"more"])
    archive(spark, bootstrap, topic, place)
    assert read_lake(spark, place, "parquet") == read_topic(bootstrap, topic)


def test_values_that_are_not_the_declared_json(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 1)
    good = [b'{"id": 1, "name": "a"}', b'{"id": 2}', None]
    bad = [b"nothing", b'{"id": "x"}', b"\xff", b"", b"5", b'{"id": 3} x', b'{"id": 3}, {}']
    produce(bootstrap, topic, [*good, *bad], key=b"k")
    schema = infer_json_schema(spark, [value.decode() for value in good if value])
    assert schema == StructType([StructField("id", LongType()), StructField("name", StringType())])
    decoding = Decoding("json", "text", schema)
    with pytest.raises(Exception) as failure:
        archive(spark, bootstrap, topic, place, decoding=decoding)
    said = str(as_sentence(failure.value))
    assert said.startswith(
        f"the value in topic {topic}, partition 0, offset 3 is not the declared JSON"
    )
    assert not Path(place.table).exists()

    dead = Place.of(f"{place.table}_dead")
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    assert (written.records, written.dead_letters) == (3, len(bad))
    rows = spark.read.parquet(place.table).orderBy("offset").collect()
    assert [row["value"] and tuple(row["value"]) for row in rows] == [(1, "a"), (2, None), None]
    assert {row["key"] for row in rows} == {"k"}
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert [(row["offset"], bytes(row["value"]), row["key"]) for row in letters] == [
        (number, value, b"k") for number, value in enumerate(bad, 3)
    ]
    assert [row["reason"] for row in letters][2] == "is not UTF-8"


AVRO_SCHEMAS = {
    1: {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]},
    2: {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string", "default": "none"},
        ],
    },
}


@pytest.fixture
def registry() -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            schema = AVRO_SCHEMAS.get(int(self.path.rpartition("/")[2]))
            self.send_response(200 if schema else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(schema)}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Registry(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + payload


def test_avro_with_the_schema_ids_of_a_registry(
    spark: SparkSession, bootstrap: str, topic: str, place: Place, registry: Registry
) -> None:
    create(bootstrap, topic, 1)
    id_of_7 = bytes([14])  # zigzag
    values = [framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab"), None]
    values += [framed(99, id_of_7), b"\x01", framed(2, b"")]
    produce(bootstrap, topic, values)
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[2]), registry=registry)
    dead = Place.of(f"{place.table}_dead")
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    rows = spark.read.parquet(place.table).orderBy("offset").collect()
    assert [row["value"] and tuple(row["value"]) for row in rows] == [(7, "none"), (7, "ab"), None]
    assert written.dead_letters == 3
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert [row["reason"] for row in letters] == [
        "is not the declared Avro",
        "has no schema id of this registry in front",
        "is not the declared Avro",
    ]


def asked_for(*words: str) -> argparse.Namespace:
    """The arguments of `pykafkalog pipeline archive`."""
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["archive", *words, "--available-now"])


def test_topics_by_pattern_from_a_time(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    for name in ("a", "b"):
        create(bootstrap, f"{topic}-{name}", 1)
        for number in range(3):
            produce(bootstrap, f"{topic}-{name}", [b"%d" % number], timestamp=FIRST_MS + number)
    create(bootstrap, topic, 1)  # does not match
    words = ["--pattern", f"{topic}-.", "--starting-offsets", str(FIRST_MS + 1)]
    args = asked_for(*words, "--to", place.table, "-b", bootstrap)
    archiving = Archiving(
        spark, Parts(command._source(args), place, ParquetTable(spark, place), Decoding("text"))
    )
    archiving.run(None)
    assert [
        (each.topic, each.records, each.first_offset) for each in archiving.written.partitions()
    ] == [(f"{topic}-a", 2, 1), (f"{topic}-b", 2, 1)]
    rows = spark.read.parquet(place.table).select("topic", "value").collect()
    assert {row["value"] for row in rows} == {"1", "2"}
    with pytest.raises(PipelineError, match="no topic matches"):
        command._source(asked_for("--pattern", f"{topic}x", "--to", "x", "-b", bootstrap))


def stopped_after(count: int, frame: Any) -> Any:
    """A table whose rows end, for a restore that was killed."""
    return frame.where(f"position < {count}")


def test_a_restore_goes_on_and_keeps_all_of_a_record(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic)
    transactions(bootstrap, topic, 15)
    archive(spark, bootstrap, topic, place)
    target = f"{topic}-back"
    job = SendJob(f"restore-{topic}", bootstrap, records_per_transaction=7)
    frame = read_table(spark, place.table, "parquet")
    columns = Columns().found_in(frame.columns)
    rows = records(frame, columns, target)
    targets = Targets(job)
    assert targets.ensure({target: 2}, {}, {}, 1) == [target]

    def restore(some: Callable[[Any], Any]) -> int:
        progress = targets.begin({target: 2}, append=False)
        return sum(sent.sent for sent in send(spark, some(rows), progress, 2, job))

    part = restore(lambda frame: stopped_after(40, frame))
    assert 0 < part < 60
    assert part + restore(lambda frame: frame) == 60
    assert restore(lambda frame: frame) == 0

    def without_offset(rows: list[Row]) -> list[Row]:
        return [(row[0], *row[2:]) for row in rows]

    wanted = read_topic(bootstrap, topic)
    assert without_offset(read_topic(bootstrap, target)) == without_offset(wanted)
    assert [(e.partition, e.records) for e in extents(rows)] == [(0, 30), (1, 30)]

    other = Targets(SendJob(f"another-{topic}", bootstrap))
    with pytest.raises(PipelineError, match="holds records that this restore knows nothing of"):
        other.begin({target: 2}, append=False)
