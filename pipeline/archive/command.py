"""`pykafkalog pipeline archive`: topics to a table of the lake."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.arguments import (
    add_broker_arguments,
    add_command,
    add_spark_arguments,
    pairs,
    session_of,
)
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.archive.archiving import Source
    from pipeline.archive.written import News, Written

EXAMPLES = """\
  pykafkalog pipeline archive orders --to /lake/orders --available-now
  pykafkalog pipeline archive orders clicks --to /lake/events --interval 60 --compact
  pykafkalog pipeline archive --pattern 'shop\\..*' --to /lake/shop --format iceberg --available-now
  pykafkalog pipeline archive orders --to /lake/orders --available-now \\
      --value json --json-schema 'id BIGINT, item STRING' --dead-letter /lake/orders-dead
  pykafkalog pipeline archive orders --to /lake/orders --available-now \\
      --value avro --schema-registry http://localhost:8081

A field of a JSON or Avro value that the table does not have yet becomes a column; the archive says
so. With --new-fields refuse such a value is not as declared: the archive ends, or the record is a
dead letter. With --new-fields drop the field is left out, and the records are counted."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "archive",
        text="Archive topics in a table of the lake, each record once.",
        examples=EXAMPLES,
    )
    parser.add_argument("topic", nargs="*")
    parser.add_argument("--pattern", help="all topics whose whole name matches, new ones too")
    parser.add_argument("--to", required=True, metavar="PATH", help="the table")
    parser.add_argument("--format", default="parquet", choices=("parquet", "iceberg", "delta"))
    parser.add_argument("--state", metavar="PATH", help="checkpoint and staging (default: beside)")
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument("--available-now", action="store_true", help="what there is now, then end")
    when.add_argument("--interval", type=float, metavar="S", help="a batch each so many seconds")
    _add_reading(parser)
    _add_values(parser)
    parser.add_argument(
        "--compact", action="store_true", help="compact small files: now and then, and at the end"
    )
    parser.add_argument(
        "--compact-each", type=int, default=20, metavar="N", help="... batches (default: 20)"
    )
    parser.add_argument("--target-mb", type=float, default=128, help="of compacted files")
    parser.add_argument("--json", action="store_true", help="print JSON, a line each batch")
    add_broker_arguments(parser)
    add_spark_arguments(parser)
    parser.set_defaults(run=run)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--starting-offsets",
        default="earliest",
        metavar="WHERE",
        help="of partitions that were never read: earliest, latest, milliseconds since the epoch,"
        ' or JSON {"topic": {"0": 12}} (default: earliest)',
    )
    group.add_argument(
        "--max-offsets", type=int, default=500_000, help="of a batch (default: 500,000)"
    )
    group.add_argument("--read-uncommitted", action="store_true", help="aborted transactions, too")
    group.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="go on where retention took records before they were archived",
    )


def _add_values(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("keys and values")
    group.add_argument("--key", default="bytes", choices=("bytes", "text"))
    group.add_argument("--value", default="bytes", choices=("bytes", "text", "json", "avro"))
    group.add_argument(
        "--json-schema",
        metavar="DDL|FILE",
        help="of JSON values (default: inferred from the first); later, types of new fields",
    )
    group.add_argument("--avro-schema", type=Path, metavar="FILE", help="of Avro values")
    group.add_argument(
        "--schema-registry", metavar="URL", help="Avro values begin with a schema id of it"
    )
    group.add_argument(
        "--new-fields",
        default="columns",
        choices=("columns", "refuse", "drop"),
        help="what becomes of fields that the table does not have (default: columns)",
    )
    group.add_argument(
        "--dead-letter", metavar="PATH", help="a Parquet table for values that are not as declared"
    )


def run(args: argparse.Namespace) -> int:
    """Archive, then print what was written; return 130 if a signal cut `--available-now` short."""
    from pipeline.archive.archiving import Archiving, Parts
    from pipeline.archive.compacting import MB, compact_and_tell
    from pipeline.archive.place import Place
    from pipeline.archive.schemas import values_of
    from pipeline.archive.tables.opening import open_table, requirements
    from pipeline.archive.tables.parquet import ParquetTable
    from pipeline.archive.topics import TopicsFile

    _check(args)
    source = _source(args)
    place = Place.of(args.to, args.state)
    packages, settings = requirements(args.format, place)
    with (
        place.lock() as held,
        session_of(args, "archive", _packages(args, packages), settings, [held]) as session,
    ):
        table = open_table(args.format, session, place)
        values = values_of(args, session, source, place, table)
        dead = None
        if args.dead_letter:
            dead = ParquetTable(session, Place.of(args.dead_letter))
        topics = TopicsFile(session, source, place.topics)
        if problem := topics.refresh():
            print(problem, file=sys.stderr)
        told = _Telling(args)

        def after_batch(written: "Written", writer: str, batch: int) -> None:
            told.batch(written, batch)
            topics.refresh()
            if args.compact and (batch + 1) % args.compact_each == 0:
                # Spark may repeat this batch, but not the one before it.
                table.compact(int(args.target_mb * MB), batch - 1, writer)

        parts = Parts(source, place, table, values, dead, after_batch, told.news)
        archiving = Archiving(session, parts)
        try:
            with _told_to_stop() as stopping:
                archiving.run(args.interval, told.progress, stopping)
                cut_short = stopping() and args.interval is None
        finally:
            told.end()
        _show(args, archiving.written)
        if args.compact:
            compact_and_tell(table, session, place, args.target_mb, as_json=args.json)
    return 130 if cut_short else 0


def _check(args: argparse.Namespace) -> None:
    """Raise PipelineError for arguments that contradict each other."""
    from pipeline.archive.place import Place

    if bool(args.topic) == bool(args.pattern):
        raise PipelineError("name topics, or give a --pattern")
    if args.json_schema and args.value != "json":
        raise PipelineError("--json-schema is of --value json")
    registered = args.schema_registry or args.avro_schema
    if registered and args.value != "avro":
        raise PipelineError("--avro-schema and --schema-registry are of --value avro")
    if args.value == "avro" and not registered:
        raise PipelineError("--value avro needs --avro-schema or --schema-registry")
    if args.dead_letter and Place.of(args.dead_letter).table == Place.of(args.to, args.state).table:
        raise PipelineError("--dead-letter is another table than --to")
    if (
        args.max_offsets < 1
        or args.compact_each < 1
        or args.target_mb <= 0
        or (args.interval or 0) < 0
    ):
        raise PipelineError("--max-offsets, --compact-each and --target-mb are greater than 0")


def _source(args: argparse.Namespace) -> "Source":
    from pipeline.archive.archiving import Source
    from pipeline.broker import matching, partitions_of_topics

    client = pairs(args.kafka_option)
    if not any(key.startswith(("security.", "sasl.", "ssl.")) for key in client):
        # These are settings of the Java client; the client that asks for topics has others.
        matching(partitions_of_topics(args.bootstrap_server), args.topic, args.pattern)
    where = args.starting_offsets
    starting = {"startingOffsets": where}
    if where.isdecimal() and int(where) < 2**63:
        starting = {"startingTimestamp": where, "startingOffsetsByTimestampStrategy": "latest"}
    elif where not in ("earliest", "latest") and not where.startswith("{"):
        raise PipelineError(
            f"--starting-offsets {where}: earliest, latest, JSON, or milliseconds below 2^63"
        )
    return Source(
        bootstrap=args.bootstrap_server,
        topics=tuple(args.topic),
        pattern=args.pattern,
        starting=starting,
        read_committed=not args.read_uncommitted,
        max_offsets=args.max_offsets,
        fail_on_data_loss=not args.allow_data_loss,
        client=client,
    )


def _packages(args: argparse.Namespace, of_table: tuple[str, ...]) -> list[str]:
    from pipeline.session import AVRO, KAFKA

    return [KAFKA, *of_table, *([AVRO] if args.value == "avro" else [])]


class _Telling:
    """Prints progress while an archive runs: a line on a terminal, or a line for each batch."""

    def __init__(self, args: argparse.Namespace) -> None:
        from pipeline.showing import StatusLine

        self._args = args
        self._line = StatusLine("reading offsets …").__enter__()
        self._since = time.monotonic()
        self._told = 0

    def batch(self, written: "Written", number: int) -> None:
        """Report a batch that the table has."""
        from pipeline.showing import print_json

        records, self._told = written.records - self._told, written.records
        if self._args.json:
            print_json({"batch": number, "records": records, "total": written.records})
        elif self._args.interval is not None and not sys.stderr.isatty():
            print(f"batch {number}: {records:,} records, {written.records:,} so far", flush=True)

    def news(self, news: "News", number: int) -> None:
        """Report new columns at once; the summary at the end reports dropped fields."""
        from pipeline.showing import print_json

        if news.columns and self._args.json:
            print_json({"batch": number, "new_columns": list(news.columns)})
        elif news.columns:
            print(f"batch {number}: new columns in value: {', '.join(news.columns)}", flush=True)

    def progress(self, progress: Any) -> None:
        """Show the progress that Spark reports of its last batch."""
        seconds = max(time.monotonic() - self._since, 0.1)
        told = self._told
        behind = _behind(progress)
        self._line.say(
            f"{told:,} records, {told / seconds:,.0f}/s"
            + ("" if behind is None else f", {behind:,} offsets to go")
            + ("" if progress is None else f" (batch {progress.batchId})")
        )

    def end(self) -> None:
        """End the line on the terminal."""
        self._line.__exit__()


def _behind(progress: Any) -> int | None:
    """Return how many offsets were left to read after the last batch; None if unknown."""
    if progress is None or not progress.sources:
        return None
    import json

    source = progress.sources[0]
    try:
        ends, latest = json.loads(source.endOffset), json.loads(source.latestOffset)
        return sum(
            int(end) - int(ends.get(topic, {}).get(number, 0))
            for topic, partitions in latest.items()
            for number, end in partitions.items()
        )
    except (TypeError, ValueError, AttributeError):
        return None


def _show(args: argparse.Namespace, written: "Written") -> None:
    from pipeline.showing import print_json, print_table, size_of

    if args.json:
        print_json(written.as_json())
        return
    if not written.partitions():
        print("no records for the table" if written.dead_letters else "nothing new to archive")
    else:
        rows = [
            (
                each.topic,
                each.partition,
                each.records,
                each.first_offset,
                each.last_offset,
                each.files,
                size_of(each.bytes),
            )
            for each in written.partitions()
        ]
        names = ("topic", "partition", "records", "first offset", "last offset", "files", "size")
        print_table(f"written to {args.to}", names, rows)
    if args.dead_letter and written.dead_letters:
        print(f"{written.dead_letters:,} dead letters in {args.dead_letter}")
    if written.dropped_fields:
        print(
            f"{written.dropped_fields:,} records lost fields that the table does not have:"
            f" {', '.join(sorted(written.dropped_names))}"
        )


@contextmanager
def _told_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM came; a second one ends the process.

    The handler raises no exception: it could interrupt a call to the JVM, and the next call would
    take that call's answer for its own.
    """
    told: list[int] = []

    def note(number: int, _frame: Any) -> None:
        told.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(told)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
