"""Topics to Parquet, Iceberg and Delta and back, by one Spark session with all three in it."""

import argparse
import json
import os
import re
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
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
from tests.support.schema_registry import SchemaRegistry
from tests.support.topics import make_topic

FORMATS = ("parquet", "iceberg", "delta")
DAY_MS = 86_400_000
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def lake_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def spark(lake_directory: Path) -> Iterator[SparkSession]:
    _, of_iceberg = requirements("iceberg", Place.of(str(lake_directory / "any")))
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


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Lake:
    """A topic, and the table that it is archived to."""

    spark: SparkSession
    bootstrap: str
    topic: str
    place: Place

    @property
    def dead(self) -> Place:
        """Its dead letters."""
        return Place.of(f"{self.place.table}_dead")

    def create(self, partitions: int = 2, **configs: str) -> None:
        """Create the topic, whose old records stay."""
        make_topic(self.bootstrap, self.topic, partitions=partitions, retention_ms="-1", **configs)

    def produce(self, values: list[bytes | None], topic: str | None = None, **more: Any) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "message.max.bytes": 10_000_000,
                "batch.size": 40_000,
            }
        )
        for value in values:
            producer.produce(topic or self.topic, value, **more)
        assert producer.flush(30) == 0

    def produce_json(self, values: list[Any]) -> None:
        self.produce([json.dumps(value).encode() for value in values])

    def transactions(self, count: int) -> None:
        """Each third is aborted; records go to two partitions, three days, with and without
        headers."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"{self.topic}-id",
                "linger.ms": 5,
            }
        )
        producer.init_transactions(30)
        for number in range(count):
            producer.begin_transaction()
            aborted = number % 3 == 1
            for part in range(6):
                producer.produce(
                    self.topic,
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

    def read_topic(self, partitions: int = 2, topic: str | None = None) -> list[Row]:
        """(partition, offset, key, value, timestamp, headers) of a read_committed consumer."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "oracle",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        places = [
            confluent_kafka.TopicPartition(topic or self.topic, number, 0)
            for number in range(partitions)
        ]
        consumer.assign(places)
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

    def read_table(self, table_format: str = "parquet") -> list[Row]:
        """The rows of the table, in the form of `read_topic`."""
        rows = []
        for row in read_table(self.spark, self.place.table, table_format).toArrow().to_pylist():
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
        self,
        table_format: str = "parquet",
        *,
        decoding: Decoding | None = None,
        choice: NewFields = NewFields.COLUMNS,
        with_dead: bool = False,
        max_offsets: int = 40,
    ) -> Written:
        """Archive the records that there are now."""
        return self.run(
            open_table(table_format, self.spark, self.place),
            Evolving(decoding or Decoding(), choice),
            with_dead=with_dead,
            max_offsets=max_offsets,
        )

    def run(
        self, table: Any, evolving: Evolving, *, with_dead: bool = True, max_offsets: int = 40
    ) -> Written:
        """Archive the records that there are now, with these parts."""
        source = Source(self.bootstrap, (self.topic,), max_offsets=max_offsets)
        letters = ParquetTable(self.spark, self.dead) if with_dead else None
        archiving = Archiving(self.spark, Parts(source, self.place, table, evolving, letters))
        archiving.run(None)
        return archiving.written

    def beside(self, name: object) -> "Lake":
        """The same topic, with another table."""
        return replace(self, place=Place.of(f"{self.place.table}_{name}"))

    def commits(self) -> list[Path]:
        found = Path(self.place.checkpoint, "commits").glob("[0-9]*")
        return sorted(found, key=lambda path: int(path.name))

    def values(self, table_format: str = "parquet") -> list[Any]:
        """The values as plain dicts, without the fields that are null."""
        frame = read_table(self.spark, self.place.table, table_format).orderBy("offset")
        return [row["value"] and plain(row["value"].asDict(True)) for row in frame.collect()]

    def restored_values(self, table_format: str) -> list[Any]:
        """The values that a restore would send: as JSON, without the fields that are null."""
        frame = read_table(self.spark, self.place.table, table_format)
        columns = Columns(value_as_json=True).found_in(frame.columns)
        rows = records(frame, columns, None).orderBy("position").collect()
        return [plain(row["value"] and json.loads(bytes(row["value"]))) for row in rows]

    def letters(self) -> list[Any]:
        """The rows of its dead letters."""
        return self.spark.read.parquet(self.dead.table).orderBy("offset").collect()

    def called(self, module: Any, *words: str) -> None:
        """`pykafkalog pipeline …` with the broker of the topic, in the session that there is."""
        parser = argparse.ArgumentParser()
        module.add_parser(parser.add_subparsers())
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(module, "session_of", lambda *_: nullcontext(self.spark))
            try:
                module.run(parser.parse_args([*words, "-b", self.bootstrap]))
            except Exception as error:  # noqa: BLE001 - as `session_of` does
                raise as_sentence(error) from None

    def restore(self, *words: str) -> None:
        self.called(restoring, "restore", self.place.table, *words)


def plain(value: Any) -> Any:
    """A value without the fields that are null."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def lake(spark: SparkSession, bootstrap: str, topic: str, lake_directory: Path) -> Lake:
    place = Place.of(str(lake_directory / topic.replace("-", "_")))
    return Lake(spark, bootstrap, topic, place)


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_archive_has_each_committed_record_once_also_of_a_batch_given_twice(
    lake: Lake, table_format: str
) -> None:
    lake.create()
    lake.transactions(15)
    wanted = lake.read_topic()
    first = lake.archive(table_format)
    assert first.records == len(wanted) == 60
    assert first.batches > 1
    assert lake.read_table(table_format) == wanted

    # The driver died between the table's commit and the checkpoint's.
    lake.commits()[-1].unlink()
    assert lake.archive(table_format).batches == 1
    assert lake.read_table(table_format) == wanted

    # It died again, and there was more to read.
    lake.commits()[-1].unlink()
    lake.produce([b"more"] * 10, partition=1)
    lake.archive(table_format)
    wanted = lake.read_topic()
    assert lake.read_table(table_format) == wanted

    writer, committed = settled(lake.spark, lake.place)
    done = open_table(table_format, lake.spark, lake.place).compact(1_000_000, committed, writer)
    assert done.files_after < done.files_before
    assert done.files_after == 3  # of each day one: two of them, and today
    assert lake.read_table(table_format) == wanted


def test_a_batch_of_parquet_that_was_cut_off_is_completed(lake: Lake) -> None:
    """The driver died between two renames; a compaction came before the batch was given again."""
    lake.create()
    lake.transactions(6)
    wanted = lake.read_topic()
    lake.archive()
    last = lake.commits()[-1]
    files = sorted(Path(lake.place.table).rglob(f"*-{int(last.name):010d}-*.parquet"))
    assert len(files) > 1
    last.unlink()
    files[0].unlink()
    lake.produce([b"more"])  # without it there would be nothing to compact
    writer, committed = settled(lake.spark, lake.place)
    ParquetTable(lake.spark, lake.place).compact(1_000_000, committed, writer)
    lake.archive()
    assert lake.read_table()[: len(wanted)] != []
    assert lake.read_table() == lake.read_topic()


@pytest.mark.parametrize("moment", ["before the exchange", "after it"])
def test_a_compaction_of_parquet_that_was_killed_changes_nothing_for_readers(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake.create()
    lake.transactions(6)
    lake.archive()
    wanted = lake.read_topic()
    table = ParquetTable(lake.spark, lake.place)
    writer, committed = settled(lake.spark, lake.place)

    class Killed(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        call = "_exchange" if moment == "before the exchange" else "shutil.rmtree"
        patched.setattr(f"{parquet.__name__}.{call}", die)
        with pytest.raises(Killed):
            table.compact(1_000_000, committed, writer)
    assert lake.read_table() == wanted
    done = table.compact(1_000_000, committed, writer)
    assert done.files_after == 2
    assert lake.read_table() == wanted
    lake.produce([b"more"])
    lake.archive()
    assert lake.read_table() == lake.read_topic()


def test_values_that_are_not_the_declared_json(lake: Lake, topic: str) -> None:
    lake.create(1)
    good = [b'{"id": 1, "name": "a"}', b'{"id": 2}', None]
    bad = [b"nothing", b'{"id": "x"}', b"\xff", b"", b"5", b'{"id": 3} x', b'{"id": 3}, {}']
    lake.produce([*good, *bad], key=b"k")
    schema = infer_json_schema(lake.spark, [value.decode() for value in good if value])
    assert schema == StructType([StructField("id", LongType()), StructField("name", StringType())])
    decoding = Decoding("json", "text", schema)
    with pytest.raises(Exception) as failure:
        lake.archive(decoding=decoding)
    said = str(as_sentence(failure.value))
    assert said.startswith(
        f"the value in topic {topic}, partition 0, offset 3 is not the declared JSON"
    )
    assert not Path(lake.place.table).exists()

    written = lake.archive(decoding=decoding, with_dead=True)
    assert (written.records, written.dead_letters) == (3, len(bad))
    rows = lake.spark.read.parquet(lake.place.table).orderBy("offset").collect()
    assert [row["value"] and tuple(row["value"]) for row in rows] == [(1, "a"), (2, None), None]
    assert {row["key"] for row in rows} == {"k"}
    letters = lake.letters()
    assert [(row["offset"], bytes(row["value"]), row["key"]) for row in letters] == [
        (number, value, b"k") for number, value in enumerate(bad, 3)
    ]
    assert [row["reason"] for row in letters][2] == "is not UTF-8"


@pytest.mark.parametrize("table_format", FORMATS)
def test_new_fields_of_json_become_columns_once_and_for_all(lake: Lake, table_format: str) -> None:
    lake.create(1)
    first = [{"id": 1, "a": 1, "in": {"x": 1}, "list": [{"x": 1}]}]
    second = [
        {"id": 2, "b": "new"},
        {"id": 3, "in": {"x": 2, "y": [1.5]}, "list": [{"x": 2}, {"z": True}]},
        {"id": 4, "c": {"deep": {"er": 1}}},
    ]
    third = [{"id": 5, "b": "known", "d": 1}, {"id": 6}]

    lake.produce_json(first)
    stored: list[Decoding] = []
    table = open_table(table_format, lake.spark, lake.place)
    schema = infer_json_schema(lake.spark, [json.dumps(first[0])])

    def run(decoding: Decoding) -> Written:
        return lake.run(table, Evolving(decoding, store=stored.append, allows=table.allows))

    assert run(Decoding("json", schema=schema)).new_columns == []
    assert stored == []
    lake.produce_json(second)
    written = run(Decoding("json", schema=schema))
    added = ["in.y ARRAY<DOUBLE>", "list.z BOOLEAN", "b STRING", "c STRUCT<DEEP:STRUCT<ER:BIGINT>>"]
    assert (written.records, written.dead_letters) == (3, 0)
    assert written.new_columns == added
    assert lake.values(table_format) == first + second

    # The driver died between the table's commit and the checkpoint's; the schema was stored.
    lake.commits()[-1].unlink()
    lake.produce_json(third)
    (grown,) = stored
    written = run(grown)
    assert written.new_columns == ["d BIGINT"]
    assert lake.values(table_format) == first + second + third

    # A reason names each field that cannot be a column, and nothing of its record is lost.
    odd = [b'{"id": 7, "ID": 8}', b'{"id": 7, "id": 8}', b'{"id": 9, "b": {"was": "text"}}']
    odd += [b'{"id": 10, "in": {"X": 1}}']
    lake.produce(odd)
    written = run(stored[-1])
    letters = lake.letters()
    assert [bytes(row["value"]) for row in letters] == [odd[0], odd[1], odd[3]]
    assert [row["reason"] for row in letters] == [
        "has fields that are no columns of the table: ID",
        "names a field twice, or is no strict JSON",
        "has fields that are no columns of the table: in.X",
    ]
    assert lake.values(table_format)[-1] == {"id": 9, "b": '{"was":"text"}'}
    whole = first + second + third + [{"id": 9, "b": '{"was":"text"}'}]
    assert lake.restored_values(table_format) == whole

    writer, committed = settled(lake.spark, lake.place)
    table.compact(1_000_000, committed, writer)
    assert lake.values(table_format) == whole


def test_names_that_a_format_cannot_hold_make_dead_letters(lake: Lake) -> None:
    names = ["a b", "a.b", "a,b", "a=b", "a;b", "a(b)", "a{b}", "a\nb", "a`b", "\u00e4", "$a", ""]
    lake.create(1)
    lake.produce_json([{"id": 1}, *({"id": 2, name: 1} for name in names)])
    for table_format in FORMATS:
        here = lake.beside(table_format)
        table = open_table(table_format, lake.spark, here.place)
        schema = infer_json_schema(lake.spark, ['{"id": 1}'])
        written = here.run(table, Evolving(Decoding("json", schema=schema), allows=table.allows))
        # Spark infers no field without a name.
        taken = [name for name in names if name and table.allows(name)]
        assert written.dead_letters == len(names) - len(taken)
        rows = here.values(table_format)
        assert rows == [{"id": 1}, *({"id": 2, name: 1} for name in taken)]


def test_new_fields_are_refused_or_dropped_and_counted(lake: Lake) -> None:
    lake.create(1)
    values = [b'{"a": 1}', b'{"a": 2, "b": 1}', b'{"a": "x", "c": 1}', b'{"a": 3, "b": null}']
    lake.produce(values)
    decoding = Decoding("json", schema=StructType([StructField("a", LongType())]))
    with pytest.raises(Exception) as failure:
        lake.archive(decoding=decoding, choice=NewFields.REFUSE)
    said = str(as_sentence(failure.value))
    assert "offset 1 has fields that are no columns of the table: b" in said
    assert not Path(lake.place.table).exists()
    for choice in NewFields:
        here = lake.beside(choice)
        written = here.archive(decoding=decoding, choice=choice, with_dead=True)
        rows = here.values()
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


def test_names_that_are_data_end_the_archive_before_they_are_columns(lake: Lake) -> None:
    lake.create(1)
    values = [{f"user-{part}-{number}": 1 for number in range(250)} for part in range(2)]
    lake.produce_json(values)
    schema = StructType([StructField("id", LongType())])
    with pytest.raises(PipelineError, match=r"more than 500 fields, such as user-0-0, "):
        lake.archive(decoding=Decoding("json", schema=schema))
    names = MapType(StringType(), LongType())
    written = lake.archive(decoding=Decoding("json", schema=names))
    assert (written.records, written.new_columns) == (2, [])
    known = StructType([StructField("user-0-0", LongType())])
    written = lake.beside("enough").archive(decoding=Decoding("json", schema=known))
    assert (written.records, len(written.new_columns)) == (2, 499)


def test_a_key_that_is_no_text_makes_a_dead_letter(lake: Lake) -> None:
    lake.create(1)
    lake.produce([b"good", None], key=b"k")
    lake.produce([b"bad", None], key=b"\xff\xfe")
    decoding = Decoding("bytes", "text")
    written = lake.archive(decoding=decoding, with_dead=True)
    assert (written.records, written.dead_letters) == (2, 2)
    letters = lake.letters()
    assert [(bytes(row["key"]), row["value"] and bytes(row["value"])) for row in letters] == [
        (b"\xff\xfe", b"bad"),
        (b"\xff\xfe", None),
    ]
    assert {row["reason"] for row in letters} == {"has a key that is not UTF-8"}


def record(name: str, /, **types: Any) -> dict[str, Any]:
    """The Avro schema of a record, by the types of its fields."""
    fields: list[Any] = [{"name": field, "type": kind} for field, kind in types.items()]
    return {"type": "record", "name": name, "fields": fields}


def enum(*symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": "K", "symbols": symbols, "default": symbols[0]}


AVRO_SCHEMAS: dict[int, Any] = {
    1: record("R", id="long"),
    2: record("R", id="long", name="string"),
    3: record("R", id="long", kind=enum("A", "B")),
    4: record(
        "R",
        id="long",
        kind=enum("A", "C"),
        places={"type": "array", "items": record("P", x="int")},
    ),
    5: record("R", ID="long"),
}
AVRO_SCHEMAS[2]["fields"][1]["default"] = "none"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with SchemaRegistry() as served:
        for schema_id, schema in AVRO_SCHEMAS.items():
            assert served.add(f"s{schema_id}", schema) == schema_id
        yield Registry(served.url)


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + payload


def test_avro_with_the_schema_ids_of_a_registry(lake: Lake, registry: Registry) -> None:
    lake.create(1)
    id_of_7 = bytes([14])  # zigzag
    values = [framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab"), None]
    values += [framed(99, id_of_7), b"\x01", framed(2, b""), framed(2, id_of_7 + b"\0\0")]
    values += [b"\0\xff\xff\xff\xff" + id_of_7]
    lake.produce(values)
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[2]), registry=registry)
    written = lake.archive(decoding=decoding, with_dead=True)
    rows = lake.spark.read.parquet(lake.place.table).orderBy("offset").collect()
    assert [row["value"] and tuple(row["value"]) for row in rows] == [(7, "none"), (7, "ab"), None]
    assert written.dead_letters == 5
    letters = lake.letters()
    assert [row["reason"] for row in letters] == [
        "is not the declared Avro",
        "has no schema id of this registry in front",
        "is not the declared Avro",
        "is not the declared Avro",
        "is not the declared Avro",
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_fields_and_symbols_of_newer_avro_schemas_become_columns(
    lake: Lake, registry: Registry, table_format: str
) -> None:
    lake.create(1)
    id_of_7 = bytes([14])
    values = [framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab")]
    lake.produce(values)
    stored: list[Decoding] = []
    table = open_table(table_format, lake.spark, lake.place)

    def run(decoding: Decoding) -> Written:
        evolving = Evolving(decoding, store=stored.append, allows=table.allows)
        return lake.run(table, evolving, max_offsets=2)

    begun = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]), registry=registry)
    assert run(begun).new_columns == ["name"]
    wanted = [{"id": 7}, {"id": 7, "name": "ab"}]
    assert lake.values(table_format) == wanted
    # Both schemas of the next batch bring something; the second one a symbol of the first's enum.
    values = [framed(3, id_of_7 + bytes([2])), framed(4, id_of_7 + bytes([2, 2, 10, 0]))]
    lake.produce([*values, framed(1, id_of_7), framed(5, id_of_7)])
    written = run(stored[-1])
    assert written.new_columns == ["kind", "kind=C", "places"]
    assert written.dead_letters == 1
    (letter,) = lake.letters()
    assert letter["reason"] == "has fields that are no columns of the table: ID"
    wanted += [{"id": 7, "kind": "B"}, {"id": 7, "kind": "C", "places": [{"x": 5}]}, {"id": 7}]
    assert lake.values(table_format) == wanted
    assert lake.restored_values(table_format) == wanted


def test_new_fields_of_avro_are_refused_or_dropped_and_counted(
    lake: Lake, registry: Registry
) -> None:
    lake.create(1)
    id_of_7 = bytes([14])
    lake.produce([framed(1, id_of_7), framed(2, id_of_7 + bytes([4]) + b"ab")])
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]), registry=registry)
    for choice, (rows, dead_letters, dropped) in {
        NewFields.REFUSE: ([{"id": 7}], 1, 0),
        NewFields.DROP: ([{"id": 7}, {"id": 7}], 0, 1),
    }.items():
        here = lake.beside(choice)
        written = here.archive(decoding=decoding, choice=choice, with_dead=True)
        assert here.values() == rows
        assert (written.dead_letters, written.dropped_fields) == (dead_letters, dropped)


def test_avro_without_ids_is_decoded_to_its_last_byte(lake: Lake) -> None:
    """A newer schema has its fields behind the others, where Spark would not read them."""
    lake.create(1)
    id_of_7 = bytes([14])
    good = [id_of_7, None]
    bad = [id_of_7 + bytes([4]) + b"ab", id_of_7 + b"\0", b"", b"\x80", b"\0\xff\xff\xff\xff\0"]
    lake.produce([*good, *bad])
    decoding = Decoding("avro", avro_schema=json.dumps(AVRO_SCHEMAS[1]))
    written = lake.archive(decoding=decoding, with_dead=True)
    assert (written.records, written.dead_letters) == (2, len(bad))
    assert lake.values() == [{"id": 7}, None]
    letters = lake.letters()
    assert {row["reason"] for row in letters} == {"is not the declared Avro"}
    longs = Decoding("avro", avro_schema='"long"')
    written = lake.beside("long").archive(decoding=longs, with_dead=True)
    assert (written.records, written.dead_letters) == (2, len(bad))


def asked_for(*words: str) -> argparse.Namespace:
    """The arguments of `pykafkalog pipeline archive`."""
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["archive", *words, "--available-now"])


def test_topics_by_pattern_from_a_time(lake: Lake, topic: str) -> None:
    for name in ("a", "b"):
        make_topic(lake.bootstrap, f"{topic}-{name}", retention_ms="-1")
        for number in range(3):
            value = [b"%d" % number]
            lake.produce(value, f"{topic}-{name}", timestamp=FIRST_MS + number)
    lake.create(1)  # does not match
    words = ["--pattern", f"{topic}-.", "--starting-offsets", str(FIRST_MS + 1)]
    args = asked_for(*words, "--to", lake.place.table, "-b", lake.bootstrap)
    table = ParquetTable(lake.spark, lake.place)
    parts = Parts(command._source(args), lake.place, table, Evolving(Decoding("text")))
    archiving = Archiving(lake.spark, parts)
    archiving.run(None)
    assert [
        (each.topic, each.records, each.first_offset) for each in archiving.written.partitions()
    ] == [(f"{topic}-a", 2, 1), (f"{topic}-b", 2, 1)]
    rows = lake.spark.read.parquet(lake.place.table).select("topic", "value").collect()
    assert {row["value"] for row in rows} == {"1", "2"}
    with pytest.raises(PipelineError, match="no topic matches"):
        command._source(asked_for("--pattern", f"{topic}x", "--to", "x", "-b", lake.bootstrap))


def test_a_restore_goes_on_and_keeps_all_of_a_record(lake: Lake, topic: str) -> None:
    lake.create()
    lake.transactions(15)
    lake.archive()
    target = f"{topic}-back"
    job = SendJob(f"restore-{topic}", lake.bootstrap, records_per_transaction=7)
    frame = read_table(lake.spark, lake.place.table, "parquet")
    columns = Columns().found_in(frame.columns)
    rows = records(frame, columns, target)
    targets = Targets(job)
    assert targets.ensure({target: WantedTopic(2, {"retention.ms": "-1"})}, {}, 1) == [target]

    def restore(some: Callable[[Any], Any]) -> int:
        progress = targets.begin({target: 2}, append=False)
        return sum(sent.sent for sent in send(lake.spark, some(rows), progress, 2, job))

    part = restore(lambda frame: frame.where("position < 40"))  # as if it was killed there
    assert 0 < part < 60
    assert part + restore(lambda frame: frame) == 60
    assert restore(lambda frame: frame) == 0

    def without_offset(rows: list[Row]) -> list[Row]:
        return [(row[0], *row[2:]) for row in rows]

    wanted = lake.read_topic()
    assert without_offset(lake.read_topic(topic=target)) == without_offset(wanted)
    assert [(e.partition, e.records) for e in extents(rows)] == [(0, 30), (1, 30)]

    other = Targets(SendJob(f"another-{topic}", lake.bootstrap))
    with pytest.raises(PipelineError, match="holds records that this restore knows nothing of"):
        other.begin({target: 2}, append=False)


EVER = str(2**63 - 1)
TAKES_ANY_TIME = {
    "message_timestamp_after_max_ms": EVER,
    "message_timestamp_before_max_ms": EVER,
}
HELD = [LEAST_MS, -13_000_000_000_000, -1, 253_402_300_800_000, MOST_MS - 1, MOST_MS]
"""Times of all years; Spark's kafka source shifts those before 1582."""
DAYS = ["0001-01-01", "1558-01-18", "1969-12-31", "9999-12-31", "9999-12-31", "9999-12-31"]
NOT_HELD = [LEAST_MS - 1, MOST_MS + 1, 1_795_803_382_261_000_000, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    "table_format",
    ["parquet", *(pytest.param(one, marks=pytest.mark.slow) for one in FORMATS[1:])],
)
def test_any_time_is_archived_exactly_or_its_record_is_named(
    lake: Lake, topic: str, table_format: str
) -> None:
    lake.create(**TAKES_ANY_TIME)
    lake.transactions(3)  # one of which is aborted
    for at in (*NOT_HELD, *HELD):
        lake.produce([str(at).encode()], partition=1, timestamp=at)
    latest = MOST_MS - 1 if table_format == "delta" else MOST_MS
    first = lake.read_topic()[-len(HELD) - len(NOT_HELD)]
    with pytest.raises(Exception) as failure:
        lake.archive(table_format, max_offsets=16)
    said = str(as_sentence(failure.value))
    place_of_it = f"the value in topic {topic}, partition 1, offset {first[1]} "
    assert said.startswith(f"{place_of_it}has the timestamp {first[4]} ms")
    assert "--dead-letter" in said

    def wanted() -> list[Row]:
        return [row for row in lake.read_topic() if LEAST_MS <= row[4] <= latest]

    def rows() -> list[Row]:
        frame = read_table(lake.spark, lake.place.table, table_format)
        dated = frame.withColumn("timestamp", F.unix_millis("timestamp"))
        return sorted(
            (
                *(row[name] for name in ("partition", "offset", "key", "value", "timestamp")),
                row["headers"] and [(one["key"], one["value"]) for one in row["headers"]],
            )
            for row in dated.toArrow().to_pylist()
        )

    run = {"with_dead": True, "max_offsets": 16}
    written = lake.archive(table_format, **run)
    assert rows() == wanted()
    assert len(lake.commits()) > 1
    assert written.dead_letters == len(HELD) + len(NOT_HELD) + 12 - len(wanted())
    letters = lake.letters()
    for row, at in zip(letters, NOT_HELD, strict=False):
        assert (bytes(row["value"]), row["timestamp"]) == (str(at).encode(), None)
        assert row["reason"].startswith(f"has the timestamp {at} ms")
    assert not Path(lake.place.staging, "exact").exists()
    # The driver died before the checkpoint had the batch.
    lake.commits()[-1].unlink()
    lake.archive(table_format, **run)
    assert rows() == wanted()
    for at in (MOST_MS, -13_000_000_000_000):  # alone in its batch
        lake.produce([b"alone"], partition=1, timestamp=at)
        lake.archive(table_format, **run)
        assert rows() == wanted()
    frame = read_table(lake.spark, lake.place.table, table_format)
    far = frame.where("timestamp > '+9999-12-31 23:59:59'")
    assert far.count() == len([row for row in wanted() if row[4] >= HELD[3]])
    if table_format == "parquet":
        frame = pandas.read_parquet(lake.place.table)
        days = [frame.date[frame.value == str(at).encode()].item() for at in HELD]
        assert days == DAYS
        files = f"{lake.place.table}/*/*/*.parquet"
        query = f"select max(date), max(epoch_ms(timestamp)) from '{files}'"
        assert duckdb.sql(query).fetchall() == [(date(9999, 12, 31), MOST_MS)]


def test_records_are_read_again_from_many_partitions_at_once(
    lake: Lake, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create(4)
    for partition in range(4):
        values: list[bytes | None] = [f"{partition} {n}".encode() for n in range(7)]
        lake.produce(values, partition=partition)
    settings = {"bootstrap.servers": lake.bootstrap}
    wanted = {0: (2, 5), 1: (None, 3), 2: (6, 7), 3: (4, 4)}
    ranges = [OffsetRange(topic, number, *bounds) for number, bounds in wanted.items()]
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for rows in exact_rows(lake.spark, settings, ranges):
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
        list(exact_rows(lake.spark, settings, beyond))


def test_a_schema_is_inferred_from_values_of_any_time_and_grows_by_those_of_the_table(
    lake: Lake, topic: str
) -> None:
    lake.create(1, **TAKES_ANY_TIME)
    values = [b'{"id": 1}', None, b'{"id": 2, "x": 1}']
    lake.produce(values, timestamp=2**63 - 1)
    first, last = (value.decode() for value in values if value)
    assert Source(lake.bootstrap, (topic,)).sample(lake.spark, 1) == [first]
    assert Source(lake.bootstrap, pattern=f"{topic}|x").sample(lake.spark, 9) == [first, last]
    lake.produce([b'{"id": 3, "y": 1}'])
    decoding = Decoding("json", schema=infer_json_schema(lake.spark, [first]))
    written = lake.archive(decoding=decoding, with_dead=True)
    assert (written.dead_letters, written.new_columns) == (3, ["y BIGINT"])


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
    lake: Lake,
    topic: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[TopicsFile] = []
    look = TopicsFile.refresh
    monkeypatch.setattr(TopicsFile, "refresh", lambda self: looked.append(self) or look(self))
    empty, small = f"{topic}-empty", f"{topic}-small"
    lake.create(6, max_message_bytes="4000000", **TAKES_ANY_TIME)
    compacted = {"cleanup_policy": "compact", "min_insync_replicas": "2"}
    make_topic(lake.bootstrap, empty, partitions=5, retention_ms="-1", **compacted)
    make_topic(lake.bootstrap, small, retention_ms="-1", max_message_bytes="50000")
    lake.produce([os.urandom(1000) for _ in range(100)], small)
    ahead = round(time.time() * 1000) + 2 * DAY_MS
    for number in (0, 2, 3):
        lake.produce([b"v"], partition=number, timestamp=ahead)
    lake.produce([os.urandom(3_000_000)], partition=3, timestamp=MOST_MS)
    state = f"{lake.place.table}-state"
    lake = replace(lake, place=Place.of(lake.place.table, state))
    words = ("--to", lake.place.table, "--state", state, "--available-now")
    lake.called(command, "archive", topic, empty, small, *words)
    assert len(looked) == 1 + len(lake.commits())  # at its start, and after each batch
    back_to = ("--topic-prefix", "back-", "--archive-state", state)
    lake.restore(*back_to)
    said = capsys.readouterr().err
    assert f"made back-{topic} with 6 partitions\n" in said
    assert "min.insync.replicas left to the broker (archived: 2)" in said
    assert len(lake.read_topic(1, f"back-{small}")) == 100
    partitions, configs = described(lake.bootstrap, f"back-{topic}")
    assert (partitions, configs["max.message.bytes"]) == (6, "4000000")
    assert configs["message.timestamp.after.max.ms"] == EVER
    partitions, configs = described(lake.bootstrap, f"back-{empty}")
    assert (partitions, configs["cleanup.policy"]) == (5, "compact")
    assert "min.insync.replicas" not in configs
    wanted = [(row[0], *row[2:]) for row in lake.read_topic(6)]
    back = lake.read_topic(6, f"back-{topic}")
    assert [(row[0], *row[2:]) for row in back] == wanted

    # The same again sends nothing and has nothing to say.
    lake.restore(*back_to)
    assert capsys.readouterr().err == ""
    assert lake.read_topic(6, f"back-{topic}") == back

    # A later run of the archive finds more partitions; a topic that is gone stays known.
    admin = AdminClient({"bootstrap.servers": lake.bootstrap})
    admin.create_partitions([NewPartitions(topic, 8)])[topic].result(30)
    lake.called(command, "archive", topic, empty, small, *words)
    file = TopicsFile(lake.spark, Source(lake.bootstrap, (topic,)), lake.place.topics)
    assert file.refresh() is None
    topics = parsed(Path(lake.place.topics).read_text(), lake.place.topics)
    assert (topics[topic].partitions, topics[empty].partitions) == (8, 5)
    with pytest.raises(PipelineError, match=r"has 6 partitions, .* 8: add them"):
        lake.restore(*back_to)
    some = ("--topic-prefix", "w-", "--archive-state", state, "--where", "partition = 2")
    lake.restore(*some)
    there = admin.list_topics(timeout=30).topics
    assert f"w-{topic}" in there and f"w-{empty}" not in there


def test_an_archive_of_an_empty_topic_brings_it_back(lake: Lake, topic: str) -> None:
    lake.create(3)
    words = ("--to", lake.place.table, "--available-now")
    lake.called(command, "archive", topic, *words)
    assert not Path(lake.place.table).exists()
    lake.restore("--rename", f"{topic}=back-{topic}")
    assert described(lake.bootstrap, f"back-{topic}")[0] == 3


def test_a_row_that_a_topic_refuses_is_named_with_the_config_and_goes_on_after_it(
    lake: Lake, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """From an archive without a description: the topic is made with the broker's configs."""
    lake.create(1, **TAKES_ANY_TIME)
    ahead = round(time.time() * 1000) + 2 * DAY_MS
    lake.produce([b"a", b"b"])
    lake.produce([b"guilty"], timestamp=ahead)
    lake.produce([b"c"])
    lake.archive()
    back = ("--topic-prefix", "back-")
    with pytest.raises(PipelineError) as refused:
        lake.restore(*back)
    assert re.search(
        rf"back-{topic}-0, position 2: the row is dated .* \({ahead} ms\).*"
        rf"--topic back-{topic} --add message\.timestamp\.after\.max\.ms={EVER}",
        str(refused.value),
    )
    assert "comes without a description of its topics" in capsys.readouterr().err
    assert lake.read_topic(1, f"back-{topic}") == []
    config = ConfigEntry(
        "message.timestamp.after.max.ms", EVER, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, f"back-{topic}", incremental_configs=[config])
    admin = AdminClient({"bootstrap.servers": lake.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
    lake.restore(*back)
    wanted = [row[2:] for row in lake.read_topic(1)]
    assert [row[2:] for row in lake.read_topic(1, f"back-{topic}")] == wanted
