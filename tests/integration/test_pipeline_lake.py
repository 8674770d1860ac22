"""Topics to Parquet, Iceberg and Delta and back, by one Spark session with all three in it."""

import argparse
import json
import os
import re
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import confluent_kafka
import duckdb
import pandas
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from pipeline.archive import command
from pipeline.archive.archiving import Archiving, Parts, Source
from pipeline.archive.compacting import settled
from pipeline.archive.evolving import Evolving, NewFields
from pipeline.archive.place import Place
from pipeline.archive.registry import Registry
from pipeline.archive.tables import delta, parquet
from pipeline.archive.tables.opening import open_table, requirements
from pipeline.archive.tables.parquet import ParquetTable
from pipeline.archive.topics import TopicsFile, parsed
from pipeline.archive.values import Decoding, infer_json_schema
from pipeline.archive.written import Written
from pipeline.errors import PipelineError
from pipeline.exact_rows import OffsetRange, exact_rows
from pipeline.failures import as_sentence
from pipeline.restore import command as restoring
from pipeline.restore.job import SendJob
from pipeline.restore.reading import Columns, read_table, records
from pipeline.restore.restoring import extents, send
from pipeline.restore.topics import Targets
from pipeline.restore.wanted import WantedTopic
from pipeline.session import AVRO, DELTA, ICEBERG, KAFKA, end_jvm, start_session
from storage.reader.arrow.schema import LEAST_MS, MOST_MS

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


def create(bootstrap: str, topic: str, partitions: int = 2, **configs: str) -> None:
    """A topic whose old records stay."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {name.replace("_", "."): value for name, value in configs.items()}
    new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1", **config})
    admin.create_topics([new])[topic].result(30)


def produce(bootstrap: str, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "message.max.bytes": 10_000_000,
            "batch.size": 40_000,
        }
    )
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
    choice: NewFields = NewFields.COLUMNS,
    dead: Place | None = None,
    max_offsets: int = 40,
) -> Written:
    """What there is now."""
    parts = Parts(
        Source(bootstrap, (topic,), max_offsets=max_offsets),
        place,
        open_table(table_format, spark, place),
        Evolving(decoding or Decoding(), choice),
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


def rows_of(spark: SparkSession, place: Place, table_format: str) -> list[Any]:
    """The values as plain dicts, without the fields that are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items() if one is not None}
        return [plain(one) for one in value] if isinstance(value, list) else value

    frame = read_table(spark, place.table, table_format).orderBy("offset")
    return [row["value"] and plain(row["value"].asDict(True)) for row in frame.collect()]


def restored(spark: SparkSession, place: Place, table_format: str) -> list[Any]:
    """What a restore would send: the values as JSON, without the fields that are null."""
    frame = read_table(spark, place.table, table_format)
    columns = Columns(value_as_json=True).found_in(frame.columns)
    rows = records(frame, columns, None).orderBy("position").collect()
    values = [row["value"] and json.loads(bytes(row["value"])) for row in rows]

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items() if one is not None}
        return [plain(one) for one in value] if isinstance(value, list) else value

    return [plain(value) for value in values]


@pytest.mark.parametrize("table_format", FORMATS)
def test_new_fields_of_json_become_columns_once_and_for_all(
    spark: SparkSession, bootstrap: str, topic: str, place: Place, table_format: str
) -> None:
    create(bootstrap, topic, 1)
    first = [{"id": 1, "a": 1, "in": {"x": 1}, "list": [{"x": 1}]}]
    second = [
        {"id": 2, "b": "new"},
        {"id": 3, "in": {"x": 2, "y": [1.5]}, "list": [{"x": 2}, {"z": True}]},
        {"id": 4, "c": {"deep": {"er": 1}}},
    ]
    third = [{"id": 5, "b": "known", "d": 1}, {"id": 6}]

    def send(values: list[Any]) -> None:
        produce(bootstrap, topic, [json.dumps(value).encode() for value in values])

    send(first)
    stored: list[Decoding] = []
    table = open_table(table_format, spark, place)
    schema = infer_json_schema(spark, [json.dumps(first[0])])
    dead = Place.of(f"{place.table}_dead")

    def run(decoding: Decoding) -> Written:
        values = Evolving(decoding, store=stored.append, allows=table.allows)
        source = Source(bootstrap, (topic,))
        letters = ParquetTable(spark, dead)
        archiving = Archiving(spark, Parts(source, place, table, values, letters))
        archiving.run(None)
        return archiving.written

    assert run(Decoding("json", schema=schema)).new_columns == []
    assert stored == []
    send(second)
    written = run(Decoding("json", schema=schema))
    added = ["in.y ARRAY<DOUBLE>", "list.z BOOLEAN", "b STRING", "c STRUCT<DEEP:STRUCT<ER:BIGINT>>"]
    assert (written.records, written.dead_letters) == (3, 0)
    assert written.new_columns == added
    assert rows_of(spark, place, table_format) == first + second

    # The driver died between the table's commit and the checkpoint's; the schema was stored.
    commits(place)[-1].unlink()
    send(third)
    (grown,) = stored
    written = run(grown)
    assert written.new_columns == ["d BIGINT"]
    assert rows_of(spark, place, table_format) == first + second + third

    # What cannot be a column is told, with the name, and nothing of its record is lost.
    odd = [b'{"id": 7, "ID": 8}', b'{"id": 7, "id": 8}', b'{"id": 9, "b": {"was": "text"}}']
    odd += [b'{"id": 10, "in": {"X": 1}}']
    produce(bootstrap, topic, odd)
    written = run(stored[-1])
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert [bytes(row["value"]) for row in letters] == [odd[0], odd[1], odd[3]]
    assert [row["reason"] for row in letters] == [
        "has fields that are no columns of the table: ID",
        "names a field twice, or is no strict JSON",
        "has fields that are no columns of the table: in.X",
    ]
    assert rows_of(spark, place, table_format)[-1] == {"id": 9, "b": '{"was":"text"}'}
    whole = first + second + third + [{"id": 9, "b": '{"was":"text"}'}]
    assert restored(spark, place, table_format) == whole

    writer, committed = settled(spark, place)
    table.compact(1_000_000, committed, writer)
    assert rows_of(spark, place, table_format) == whole


def test_names_that_a_format_cannot_hold_are_told(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    names = ["a b", "a.b", "a,b", "a=b", "a;b", "a(b)", "a{b}", "a\nb", "a`b", "\u00e4", "$a", ""]
    create(bootstrap, topic, 1)
    values = [b'{"id": 1}', *(json.dumps({"id": 2, name: 1}).encode() for name in names)]
    produce(bootstrap, topic, values)
    for table_format in FORMATS:
        here = Place.of(f"{place.table}_{table_format}")
        table = open_table(table_format, spark, here)
        dead = Place.of(f"{here.table}_dead")
        schema = infer_json_schema(spark, ['{"id": 1}'])
        values_ = Evolving(Decoding("json", schema=schema), allows=table.allows)
        source = Source(bootstrap, (topic,))
        archiving = Archiving(spark, Parts(source, here, table, values_, ParquetTable(spark, dead)))
        archiving.run(None)
        # Spark infers no field without a name.
        taken = [name for name in names if name and table.allows(name)]
        assert archiving.written.dead_letters == len(names) - len(taken)
        rows = rows_of(spark, here, table_format)
        assert rows == [{"id": 1}, *({"id": 2, name: 1} for name in taken)]


def test_new_fields_are_refused_or_dropped_and_counted(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 1)
    values = [b'{"a": 1}', b'{"a": 2, "b": 1}', b'{"a": "x", "c": 1}', b'{"a": 3, "b": null}']
    produce(bootstrap, topic, values)
    decoding = Decoding("json", schema=StructType([StructField("a", LongType())]))
    with pytest.raises(Exception) as failure:
        archive(spark, bootstrap, topic, place, decoding=decoding, choice=NewFields.REFUSE)
    assert "offset 1 has fields that are no columns of the table: b" in str(
        as_sentence(failure.value)
    )
    assert not Path(place.table).exists()
    for choice in NewFields:
        here, dead = Place.of(f"{place.table}_{choice}"), Place.of(f"{place.table}_{choice}_dead")
        written = archive(
            spark, bootstrap, topic, here, decoding=decoding, choice=choice, dead=dead
        )
        rows = rows_of(spark, here, "parquet")
        if choice is NewFields.COLUMNS:
            assert rows == [{"a": 1}, {"a": 2, "b": 1}, {"a": 3}]
            assert (written.dead_letters, written.new_columns) == (1, ["b BIGINT"])
        elif choice is NewFields.REFUSE:
            assert rows == [{"a": 1}, {"a": 3}]
            assert (written.dead_letters, written.dropped_fields) == (2, 0)
        else:
            assert rows == [{"a": 1}, {"a": 2}, {"a": 3}]
            assert (written.dead_letters, written.dropped_fields) == (1, 1)
            assert written.dropped_names == {"b"}


def test_names_that_are_data_end_the_archive_before_they_are_columns(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 1)
    values = [{f"user-{part}-{number}": 1 for number in range(250)} for part in range(2)]
    produce(bootstrap, topic, [json.dumps(value).encode() for value in values])
    schema = StructType([StructField("id", LongType())])
    with pytest.raises(PipelineError, match=r"more than 500 fields, such as user-0-0, "):
        archive(spark, bootstrap, topic, place, decoding=Decoding("json", schema=schema))
    names = MapType(StringType(), LongType())
    written = archive(spark, bootstrap, topic, place, decoding=Decoding("json", schema=names))
    assert (written.records, written.new_columns) == (2, [])
    here = Place.of(f"{place.table}_enough")
    known = StructType([StructField("user-0-0", LongType())])
    written = archive(spark, bootstrap, topic, here, decoding=Decoding("json", schema=known))
    assert (written.records, len(written.new_columns)) == (2, 499)


def test_a_key_that_is_no_text_is_told(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 1)
    produce(bootstrap, topic, [b"good", None], key=b"k")
    produce(bootstrap, topic, [b"bad", None], key=b"\xff\xfe")
    decoding = Decoding("bytes", "text")
    dead = Place.of(f"{place.table}_dead")
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    assert (written.records, written.dead_letters) == (2, 2)
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert [(bytes(row["key"]), row["value"] and bytes(row["value"])) for row in letters] == [
        (b"\xff\xfe", b"bad"),
        (b"\xff\xfe", None),
    ]
    assert {row["reason"] for row in letters} == {"has a key that is not UTF-8"}


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
    3: {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "kind",
                "type": {"type": "enum", "name": "K", "symbols": ["A", "B"], "default": "A"},
            },
        ],
    },
    4: {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "kind",
                "type": {"type": "enum", "name": "K", "symbols": ["A", "C"], "default": "A"},
            },
            {
                "name": "places",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "P",
                        "fields": [{"name": "x", "type": "int"}],
                    },
                },
            },
        ],
    },
    5: {"type": "record", "name": "R", "fields": [{"name": "ID", "type": "long"}]},
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
    values += [framed(99, id_of_7), b"\x01", framed(2, b""), framed(2, id_of_7 + b"\0\0")]
    values += [b"\0\xff\xff\xff\xff" + id_of_7]
    produce(bootstrap, topic, values)
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[2]), registry=registry)
    dead = Place.of(f"{place.table}_dead")
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    rows = spark.read.parquet(place.table).orderBy("offset").collect()
    assert [row["value"] and tuple(row["value"]) for row in rows] == [(7, "none"), (7, "ab"), None]
    assert written.dead_letters == 5
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert [row["reason"] for row in letters] == [
        "is not the declared Avro",
        "has no schema id of this registry in front",
        "is not the declared Avro",
        "is not the declared Avro",
        "is not the declared Avro",
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_fields_and_symbols_of_newer_avro_schemas_become_columns(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    place: Place,
    registry: Registry,
    table_format: str,
) -> None:
    create(bootstrap, topic, 1)
    id_of_7 = bytes([14])
    values = [framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab")]
    produce(bootstrap, topic, values)
    stored: list[Decoding] = []
    table = open_table(table_format, spark, place)
    dead = Place.of(f"{place.table}_dead")

    def run(decoding: Decoding) -> Written:
        source = Source(bootstrap, (topic,), max_offsets=2)
        evolving = Evolving(decoding, store=stored.append, allows=table.allows)
        letters = ParquetTable(spark, dead)
        archiving = Archiving(spark, Parts(source, place, table, evolving, letters))
        archiving.run(None)
        return archiving.written

    begun = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]), registry=registry)
    assert run(begun).new_columns == ["name"]
    wanted = [{"id": 7}, {"id": 7, "name": "ab"}]
    assert rows_of(spark, place, table_format) == wanted
    # Both schemas of the next batch bring something; the second one a symbol of the first's enum.
    values = [framed(3, id_of_7 + bytes([2])), framed(4, id_of_7 + bytes([2, 2, 10, 0]))]
    produce(bootstrap, topic, [*values, framed(1, id_of_7), framed(5, id_of_7)])
    written = run(stored[-1])
    assert written.new_columns == ["kind", "kind=C", "places"]
    assert written.dead_letters == 1
    (letter,) = spark.read.parquet(dead.table).collect()
    assert letter["reason"] == "has fields that are no columns of the table: ID"
    wanted += [{"id": 7, "kind": "B"}, {"id": 7, "kind": "C", "places": [{"x": 5}]}, {"id": 7}]
    assert rows_of(spark, place, table_format) == wanted
    assert restored(spark, place, table_format) == wanted


def test_new_fields_of_avro_are_refused_or_dropped_and_counted(
    spark: SparkSession, bootstrap: str, topic: str, place: Place, registry: Registry
) -> None:
    create(bootstrap, topic, 1)
    id_of_7 = bytes([14])
    produce(bootstrap, topic, [framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab")])
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]), registry=registry)
    for choice, (rows, dead_letters, dropped) in {
        NewFields.REFUSE: ([{"id": 7}], 1, 0),
        NewFields.DROP: ([{"id": 7}, {"id": 7}], 0, 1),
    }.items():
        here, dead = Place.of(f"{place.table}_{choice}"), Place.of(f"{place.table}_{choice}_dead")
        written = archive(
            spark, bootstrap, topic, here, decoding=decoding, choice=choice, dead=dead
        )
        assert rows_of(spark, here, "parquet") == rows
        assert (written.dead_letters, written.dropped_fields) == (dead_letters, dropped)


def test_avro_without_ids_is_decoded_to_its_last_byte(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    """Values of a newer schema, whose fields come behind: Spark would not read them."""
    create(bootstrap, topic, 1)
    id_of_7 = bytes([14])
    good = [id_of_7, None]
    bad = [id_of_7 + bytes([4]) + b"ab", id_of_7 + b"\0", b"", b"\x80", b"\0\xff\xff\xff\xff\0"]
    produce(bootstrap, topic, [*good, *bad])
    dead = Place.of(f"{place.table}_dead")
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]))
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    assert (written.records, written.dead_letters) == (2, len(bad))
    assert rows_of(spark, place, "parquet") == [{"id": 7}, None]
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    assert {row["reason"] for row in letters} == {"is not the declared Avro"}
    longs = Decoding("avro", avro_schema='"long"')
    here, there = Place.of(f"{place.table}_long"), Place.of(f"{place.table}_long_dead")
    written = archive(spark, bootstrap, topic, here, decoding=longs, dead=there)
    assert (written.records, written.dead_letters) == (2, len(bad))


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
        spark,
        Parts(command._source(args), place, ParquetTable(spark, place), Evolving(Decoding("text"))),
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
    assert targets.ensure({target: WantedTopic(2, {"retention.ms": "-1"})}, {}, 1) == [target]

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


EVER = str(2**63 - 1)
TAKES_ANY_TIME = {
    "message_timestamp_after_max_ms": EVER,
    "message_timestamp_before_max_ms": EVER,
}
HELD = [LEAST_MS, -13_000_000_000_000, -1, 253_402_300_800_000, MOST_MS - 1, MOST_MS]
"""Of all years, and before 1582 such as Spark's kafka source shifts."""
DAYS = ["0001-01-01", "1558-01-18", "1969-12-31", "9999-12-31", "9999-12-31", "9999-12-31"]
NOT_HELD = [LEAST_MS - 1, MOST_MS + 1, 1_795_803_382_261_000_000, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    "table_format",
    ["parquet", *(pytest.param(one, marks=pytest.mark.slow) for one in FORMATS[1:])],
)
def test_any_time_is_archived_exactly_or_its_record_is_named(
    spark: SparkSession, bootstrap: str, topic: str, place: Place, table_format: str
) -> None:
    create(bootstrap, topic, **TAKES_ANY_TIME)
    transactions(bootstrap, topic, 3)  # one of which is aborted
    for at in (*NOT_HELD, *HELD):
        produce(bootstrap, topic, [str(at).encode()], partition=1, timestamp=at)
    latest = MOST_MS - 1 if table_format == "delta" else MOST_MS
    first = read_topic(bootstrap, topic)[-len(HELD) - len(NOT_HELD)]
    with pytest.raises(Exception) as failure:
        archive(spark, bootstrap, topic, place, table_format, max_offsets=16)
    said = str(as_sentence(failure.value))
    place_of_it = f"the value in topic {topic}, partition 1, offset {first[1]} "
    assert said.startswith(f"{place_of_it}has the timestamp {first[4]} ms")
    assert "--dead-letter" in said

    def wanted() -> list[Row]:
        return [row for row in read_topic(bootstrap, topic) if LEAST_MS <= row[4] <= latest]

    def rows() -> list[Row]:
        frame = read_table(spark, place.table, table_format)
        dated = frame.withColumn("timestamp", F.unix_millis("timestamp"))
        return sorted(
            (
                *(row[name] for name in ("partition", "offset", "key", "value", "timestamp")),
                row["headers"] and [(one["key"], one["value"]) for one in row["headers"]],
            )
            for row in dated.toArrow().to_pylist()
        )

    dead = Place.of(f"{place.table}_dead")
    run = {"dead": dead, "max_offsets": 16}
    written = archive(spark, bootstrap, topic, place, table_format, **run)
    assert rows() == wanted()
    assert len(commits(place)) > 1
    assert written.dead_letters == len(HELD) + len(NOT_HELD) + 12 - len(wanted())
    letters = spark.read.parquet(dead.table).orderBy("offset").collect()
    for row, at in zip(letters, NOT_HELD, strict=False):
        assert (bytes(row["value"]), row["timestamp"]) == (str(at).encode(), None)
        assert row["reason"].startswith(f"has the timestamp {at} ms")
    assert not Path(place.staging, "exact").exists()
    # The driver died before the checkpoint had the batch.
    commits(place)[-1].unlink()
    archive(spark, bootstrap, topic, place, table_format, **run)
    assert rows() == wanted()
    for at in (MOST_MS, -13_000_000_000_000):  # alone in its batch
        produce(bootstrap, topic, [b"alone"], partition=1, timestamp=at)
        archive(spark, bootstrap, topic, place, table_format, **run)
        assert rows() == wanted()
    far = read_table(spark, place.table, table_format).where("timestamp > '+9999-12-31 23:59:59'")
    assert far.count() == len([row for row in wanted() if row[4] >= HELD[3]])
    if table_format == "parquet":
        frame = pandas.read_parquet(place.table)
        days = [frame.date[frame.value == str(at).encode()].item() for at in HELD]
        assert days == DAYS
        query = f"select max(date), max(epoch_ms(timestamp)) from '{place.table}/*/*/*.parquet'"
        assert duckdb.sql(query).fetchall() == [(date(9999, 12, 31), MOST_MS)]


def test_records_are_read_again_from_many_partitions_at_once(
    spark: SparkSession, bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bootstrap, topic, 4)
    for partition in range(4):
        values: list[bytes | None] = [f"{partition} {n}".encode() for n in range(7)]
        produce(bootstrap, topic, values, partition=partition)
    settings = {"bootstrap.servers": bootstrap}
    wanted = {0: (2, 5), 1: (None, 3), 2: (6, 7), 3: (4, 4)}
    ranges = [OffsetRange(topic, number, *bounds) for number, bounds in wanted.items()]
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for rows in exact_rows(spark, settings, ranges):
        for row in rows.collect():
            found[row.partition].append((row.offset, bytes(row.value)))
    assert found == {
        number: [(at, f"{number} {at}".encode()) for at in range(start or 0, end)]
        for number, (start, end) in wanted.items()
        if start != end
    }

    monkeypatch.setattr("pipeline.exact_rows.PATIENCE_S", 0.5)
    beyond = [OffsetRange(topic, 0, 5, 7), OffsetRange(topic, 1, 5, 8)]
    with pytest.raises(PipelineError, match=f"^{topic}-1 cannot be read beyond offset 7: "):
        list(exact_rows(spark, settings, beyond))


def test_a_schema_is_inferred_from_values_of_any_time_and_grows_by_those_of_the_table(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 1, **TAKES_ANY_TIME)
    values = [b'{"id": 1}', None, b'{"id": 2, "x": 1}']
    produce(bootstrap, topic, values, timestamp=2**63 - 1)
    first, last = (value.decode() for value in values if value)
    assert Source(bootstrap, (topic,)).sample(spark, 1) == [first]
    assert Source(bootstrap, pattern=f"{topic}|x").sample(spark, 9) == [first, last]
    produce(bootstrap, topic, [b'{"id": 3, "y": 1}'])
    decoding = Decoding("json", schema=infer_json_schema(spark, [first]))
    dead = Place.of(f"{place.table}_dead")
    written = archive(spark, bootstrap, topic, place, decoding=decoding, dead=dead)
    assert (written.dead_letters, written.new_columns) == (3, ["y BIGINT"])


def called(spark: SparkSession, module: Any, *words: str) -> None:
    """`pykafkalog pipeline …`, in the session that there is."""
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "session_of", lambda *_: nullcontext(spark))
        try:
            module.run(parser.parse_args(words))
        except Exception as error:  # noqa: BLE001 - as `session_of` does
            raise as_sentence(error) from None


def restore(spark: SparkSession, bootstrap: str, place: Place, *words: str) -> None:
    called(spark, restoring, "restore", place.table, "-b", bootstrap, *words)


def described(bootstrap: str, topic: str) -> tuple[int, dict[str, str]]:
    """The partitions of a topic, and what was set on it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30)
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return len(admin.list_topics(topic, timeout=30).topics[topic].partitions), {
        name: entry.value for name, entry in entries.items() if entry.source == source
    }


def test_topics_come_back_with_partitions_and_configs_and_the_empty_ones_too(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[TopicsFile] = []
    look = TopicsFile.refresh
    monkeypatch.setattr(TopicsFile, "refresh", lambda self: looked.append(self) or look(self))
    empty, small = f"{topic}-empty", f"{topic}-small"
    create(bootstrap, topic, 6, max_message_bytes="4000000", **TAKES_ANY_TIME)
    create(bootstrap, empty, 5, cleanup_policy="compact", min_insync_replicas="2")
    create(bootstrap, small, 1, max_message_bytes="50000")
    produce(bootstrap, small, [os.urandom(1000) for _ in range(100)])
    ahead = round(time.time() * 1000) + 2 * DAY_MS
    for number in (0, 2, 3):
        produce(bootstrap, topic, [b"v"], partition=number, timestamp=ahead)
    produce(bootstrap, topic, [os.urandom(3_000_000)], partition=3, timestamp=MOST_MS)
    state = f"{place.table}-state"
    place = Place.of(place.table, state)
    words = ("--to", place.table, "--state", state, "-b", bootstrap, "--available-now")
    called(spark, command, "archive", topic, empty, small, *words)
    assert len(looked) == 1 + len(commits(place))  # at its start, and after each batch
    back_to = ("--topic-prefix", "back-", "--archive-state", state)
    restore(spark, bootstrap, place, *back_to)
    said = capsys.readouterr().err
    assert f"made back-{topic} with 6 partitions\n" in said
    assert "min.insync.replicas left to the broker (archived: 2)" in said
    assert len(read_topic(bootstrap, f"back-{small}", 1)) == 100
    partitions, configs = described(bootstrap, f"back-{topic}")
    assert (partitions, configs["max.message.bytes"]) == (6, "4000000")
    assert configs["message.timestamp.after.max.ms"] == EVER
    partitions, configs = described(bootstrap, f"back-{empty}")
    assert (partitions, configs["cleanup.policy"]) == (5, "compact")
    assert "min.insync.replicas" not in configs
    wanted = [(row[0], *row[2:]) for row in read_topic(bootstrap, topic, 6)]
    back = read_topic(bootstrap, f"back-{topic}", 6)
    assert [(row[0], *row[2:]) for row in back] == wanted

    # The same again sends nothing and has nothing to say.
    restore(spark, bootstrap, place, *back_to)
    assert capsys.readouterr().err == ""
    assert read_topic(bootstrap, f"back-{topic}", 6) == back

    # A later run of the archive finds more partitions; a topic that is gone stays known.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 8)])[topic].result(30)
    called(spark, command, "archive", topic, empty, small, *words)
    assert TopicsFile(spark, Source(bootstrap, (topic,)), place.topics).refresh() is None
    topics = parsed(Path(place.topics).read_text(), place.topics)
    assert (topics[topic].partitions, topics[empty].partitions) == (8, 5)
    with pytest.raises(PipelineError, match=r"has 6 partitions, .* 8: add them"):
        restore(spark, bootstrap, place, *back_to)
    some = ("--topic-prefix", "w-", "--archive-state", state, "--where", "partition = 2")
    restore(spark, bootstrap, place, *some)
    there = admin.list_topics(timeout=30).topics
    assert f"w-{topic}" in there and f"w-{empty}" not in there


def test_an_archive_of_an_empty_topic_brings_it_back(
    spark: SparkSession, bootstrap: str, topic: str, place: Place
) -> None:
    create(bootstrap, topic, 3)
    words = ("--to", place.table, "-b", bootstrap, "--available-now")
    called(spark, command, "archive", topic, *words)
    assert not Path(place.table).exists()
    restore(spark, bootstrap, place, "--rename", f"{topic}=back-{topic}")
    assert described(bootstrap, f"back-{topic}")[0] == 3


def test_a_row_that_a_topic_refuses_is_named_with_the_config_and_goes_on_after_it(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From an archive without a description: the topic is made with the broker's configs."""
    create(bootstrap, topic, 1, **TAKES_ANY_TIME)
    ahead = round(time.time() * 1000) + 2 * DAY_MS
    produce(bootstrap, topic, [b"a", b"b"])
    produce(bootstrap, topic, [b"guilty"], timestamp=ahead)
    produce(bootstrap, topic, [b"c"])
    archive(spark, bootstrap, topic, place)
    back = ("--topic-prefix", "back-")
    with pytest.raises(PipelineError) as refused:
        restore(spark, bootstrap, place, *back)
    assert re.search(
        rf"back-{topic}-0, position 2: the row is dated .* \({ahead} ms\).*"
        rf"--topic back-{topic} --add message\.timestamp\.after\.max\.ms={EVER}",
        str(refused.value),
    )
    assert "comes without a description of its topics" in capsys.readouterr().err
    assert read_topic(bootstrap, f"back-{topic}", 1) == []
    config = ConfigEntry(
        "message.timestamp.after.max.ms", EVER, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, f"back-{topic}", incremental_configs=[config])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
    restore(spark, bootstrap, place, *back)
    wanted = [row[2:] for row in read_topic(bootstrap, topic, 1)]
    assert [row[2:] for row in read_topic(bootstrap, f"back-{topic}", 1)] == wanted
