"""`pykafkalog pipeline restore`: a table of the lake, or any table, to topics."""

import argparse
import hashlib
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.arguments import (
    add_broker_arguments,
    add_command,
    add_spark_arguments,
    pairs,
    session_of,
)
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.archive.place import Place
    from pipeline.archive.topics import Topic
    from pipeline.restore.job import SendJob
    from pipeline.restore.restoring import Outcome

EXAMPLES = """\
  pykafkalog pipeline restore /lake/orders
  pykafkalog pipeline restore /lake/events --topic-prefix restored-
  pykafkalog pipeline restore /lake/orders --rename orders=orders-2 --keep-offset-header was-at
  pykafkalog pipeline restore people.csv --topic people --key-column id --partitions 6"""

_NAMES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "restore",
        text="Write a table's rows to topics, each once; run it again to go on.",
        examples=EXAMPLES,
    )
    parser.add_argument("table", metavar="PATH")
    parser.add_argument(
        "--format", default="auto", choices=("auto", "parquet", "iceberg", "delta", "csv", "json")
    )
    parser.add_argument("--where", metavar="SQL", help="only rows for which this holds")
    _add_columns(parser)
    _add_targets(parser)
    group = parser.add_argument_group("sending")
    group.add_argument(
        "--id", help="the restore that is gone on with (default: from table, names and condition)"
    )
    group.add_argument(
        "--state", metavar="PATH", help="for rows that have no offsets (default: beside)"
    )
    group.add_argument("--records-per-transaction", type=int, default=10_000)
    group.add_argument(
        "--compression", default="lz4", choices=("none", "gzip", "snappy", "lz4", "zstd")
    )
    group.add_argument("--keep-offset-header", metavar="NAME", help="a header with the old offset")
    group.add_argument(
        "--date-0-as",
        type=int,
        metavar="MS",
        help="the timestamp of rows dated 0 (1970-01-01), which the client cannot send: 1, or -1"
        " for none (default: such a row is refused)",
    )
    group.add_argument("--append", action="store_true", help="to topics that hold records")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_broker_arguments(parser)
    add_spark_arguments(parser)
    parser.set_defaults(run=run)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns", "Of a table that an archive wrote they are known.")
    for name in _NAMES:
        group.add_argument(f"--{name}-column", metavar="NAME")
    group.add_argument(
        "--value-as-json", action="store_true", help="values that were decoded, as JSON"
    )
    group.add_argument(
        "--order-by", action="append", default=[], metavar="NAME", help="where there is no offset"
    )


def _add_targets(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "topics", "An archive keeps partitions and configs of its topics, the empty ones included."
    )
    group.add_argument(
        "--archive-state", metavar="PATH", help="as given to archive as --state (default: beside)"
    )
    group.add_argument("--topic", help="of all rows, where the table names none")
    group.add_argument("--topic-prefix", default="")
    group.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    group.add_argument("--partitions", type=int, help="of topics that are made; at least")
    group.add_argument("--replication-factor", type=int, default=-1)
    group.add_argument(
        "--topic-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of topics that are made, before the archived ones; KEY= leaves one to the broker",
    )


def run(args: argparse.Namespace) -> int:
    """Restore, then print what each partition got."""
    from pipeline.archive.place import Place, absolute
    from pipeline.archive.tables.opening import requirements
    from pipeline.broker import partitions_of_topics
    from pipeline.restore.job import SendJob

    if args.records_per_transaction < 1 or (args.partitions or 1) < 1:
        raise PipelineError("--records-per-transaction and --partitions are greater than nothing")
    job = SendJob(
        name=f"pykafkalog-restore-{args.id or _default_id(args)}",
        bootstrap=args.bootstrap_server,
        records_per_transaction=args.records_per_transaction,
        compression=args.compression,
        offset_header=args.keep_offset_header,
        date_0_as=args.date_0_as,
        client=dict(pairs(args.kafka_option)),
    )
    existing = partitions_of_topics(args.bootstrap_server, job.client)
    table_format = _format(args)
    place = Place(absolute(args.table), absolute(args.state) if args.state else "", "")
    packages, settings = requirements(table_format, place)
    settings["spark.sql.sources.partitionColumnTypeInference.enabled"] = "false"
    with session_of(args, "restore", packages, settings) as session:
        _restore(args, session, place, table_format, job, existing)
    return 0


def _default_id(args: argparse.Namespace) -> str:
    """Return an id that depends on table and topics only, so that a repeated command goes on."""
    from pipeline.archive.place import absolute

    said = [absolute(args.table), args.topic, args.topic_prefix, sorted(args.rename), args.where]
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]


def _format(args: argparse.Namespace) -> str:
    from pipeline.archive.place import absolute, is_local
    from pipeline.restore.reading import format_of

    path = absolute(args.table)
    if args.format != "auto":
        return str(args.format)
    if not is_local(path):
        raise PipelineError(f"{args.table} is not on this machine: say its --format")
    if not os.path.exists(path):
        archive = _archive(args)
        if archive is None or not os.path.exists(archive.topics):
            raise PipelineError(f"there is no {args.table}")
        return "parquet"  # an archive of topics without records: there is nothing to read
    names = os.listdir(path) if os.path.isdir(path) else [os.path.basename(path)]
    return format_of(names)


def _archive(args: argparse.Namespace) -> "Place | None":
    """Return the place of the archive that the table may be of; None if it can be none's."""
    from pipeline.archive.place import Place

    try:
        return Place.of(args.table, args.archive_state)
    except PipelineError:
        return None


def _archived(args: argparse.Namespace, session: Any) -> "dict[str, Topic] | None":
    """Return the topics that the archive describes, by the names of their targets."""
    from pipeline.archive.files import Files
    from pipeline.archive.topics import parsed
    from pipeline.restore.wanted import targets_of

    archive = _archive(args)
    text = None if archive is None else Files(session).read(archive.topics)
    if archive is None or text is None:
        return None
    topics = parsed(text, archive.topics)
    return targets_of(topics, pairs(args.rename), args.topic_prefix, args.topic)


def _undescribed(args: argparse.Namespace) -> str:
    archive = _archive(args)
    return (
        f"{args.table} comes without a description of its topics"
        + (f" ({archive.topics}; the next run of archive writes it)" if archive else "")
        + ": they get the partitions that have rows (--partitions), and the broker's configs"
        " (--topic-config)"
    )


def _restore(
    args: argparse.Namespace,
    session: Any,
    place: "Place",
    table_format: str,
    job: "SendJob",
    existing: dict[str, int],
) -> None:
    from pipeline.archive.files import Files
    from pipeline.restore.job import TopicLimits
    from pipeline.restore.restoring import extents, outcomes_of, send
    from pipeline.restore.topics import Targets
    from pipeline.restore.wanted import differences_in_words, made_in_words, wanted_topics
    from pipeline.showing import StatusLine

    with StatusLine("reading the table …") as line:
        archived = _archived(args, session)
        is_empty = archived is not None and not Files(session).entries(place.table)
        rows = None if is_empty else _rows(args, session, place, table_format, job)
        found = [] if rows is None else extents(rows)
        described = archived or {}
        if args.where:  # which is not asked of topics without rows
            with_rows = {one.topic for one in found}
            described = {name: one for name, one in described.items() if name in with_rows}
        given = pairs(args.topic_config)
        wanted = wanted_topics(found, described, args.partitions or 1, given)
        if not wanted:
            raise PipelineError(f"{args.table} has no rows")
        targets = Targets(job)
        made = targets.ensure(wanted, existing, args.replication_factor)
        configs = targets.configs(wanted)
        said = [made_in_words(topic, wanted[topic]) for topic in made]
        if archived is None and not args.topic:
            said.insert(0, _undescribed(args))
        for topic in sorted(wanted.keys() - set(made)):
            words = differences_in_words(topic, wanted[topic], existing[topic], configs[topic])
            said += [words] if words else []
        said += [
            f"{topic} has LogAppendTime: its records get the broker's time, not their own"
            for topic, of_it in configs.items()
            if of_it.get("message.timestamp.type") == "LogAppendTime"
        ]
        for sentence in said:
            print(sentence, file=sys.stderr)
        counts = {topic: one.partitions for topic, one in wanted.items()}
        progress = targets.begin(counts, args.append)
        line.say(f"sending to {', '.join(wanted)} …")
        limits = {topic: TopicLimits.of(of_it) for topic, of_it in configs.items()}
        job = replace(job, limits=limits)
        results = send(session, rows, progress, len(found), job) if found else []
    outcomes = outcomes_of(found, progress, results)
    _show(args, job, outcomes)
    behind = [one for one in outcomes if one.next_now <= one.last]
    if behind:
        raise PipelineError(f"{behind[0].topic}-{behind[0].partition} is not complete; run again")


def _rows(
    args: argparse.Namespace, session: Any, place: "Place", table_format: str, job: "SendJob"
) -> Any:
    """Return the table's rows as records with the names of their target topics."""
    from pyspark.sql import functions as F

    from pipeline.restore.preparing import ordered, prepared
    from pipeline.restore.reading import Columns, read_table, records

    frame = read_table(session, place.table, table_format)
    if args.where:
        frame = frame.where(args.where)
    named = {name: getattr(args, f"{name}_column") for name in _NAMES}
    columns = Columns(**named, value_as_json=args.value_as_json).found_in(frame.columns)
    if columns.offset is not None and columns.partition is not None:
        rows = records(frame, columns, args.topic)
    else:
        if table_format == "iceberg":
            raise PipelineError("an Iceberg table needs columns partition and offset")
        with_order, order = ordered(frame, args.order_by)
        rows = records(with_order, columns, args.topic, beside=order, row=frame.columns)
        rows = prepared(session, rows, _prepared_in(place, job), args.partitions or 1, order)
    renamed = pairs(args.rename)
    target = F.col("topic")
    for old, new in renamed.items():
        target = F.when(F.col("topic") == old, new).otherwise(target)
    target = (
        F.when(F.col("topic").isin(*renamed), target).otherwise(
            F.concat(F.lit(args.topic_prefix), target)
        )
        if renamed
        else F.concat(F.lit(args.topic_prefix), target)
    )
    return rows.withColumn("topic", target)


def _prepared_in(place: "Place", job: "SendJob") -> str:
    """Return the directory of numbered rows."""
    if place.state:
        return f"{place.state}/{job.name}"
    parent, _, name = place.table.rpartition("/")
    return f"{parent}/_{name}.{job.name.removeprefix('pykafkalog-')}"


def _show(args: argparse.Namespace, job: "SendJob", outcomes: list["Outcome"]) -> None:
    from dataclasses import asdict

    from pipeline.showing import print_json, print_table

    if args.json:
        print_json({"group": job.group, "partitions": [asdict(one) for one in outcomes]})
    elif not any(one.sent for one in outcomes):
        rows = sum(one.rows for one in outcomes)
        print(f"nothing to send: the {rows:,} rows of {args.table} were sent (group {job.group})")
    else:
        names = (
            "topic",
            "partition",
            "sent",
            "of rows",
            "first",
            "last",
            "next before",
            "next now",
        )
        print_table(
            f"restored from {args.table} (progress: group {job.group})",
            names,
            [tuple(asdict(one).values()) for one in outcomes],
        )
