"""`pykafkalog pipeline stats`: statistics of topics, as tables, JSON and a page."""

import argparse
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
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
    from pipeline.stats.values import Stats

EXAMPLES: Final = """\
  pykafkalog pipeline stats orders --bootstrap-server localhost:9092
  pykafkalog pipeline stats orders clicks --log-dirs /tmp/kafka-logs --html stats.html
  pykafkalog pipeline stats --log-dirs /copies/kafka-logs         all topics but internal ones
  pykafkalog pipeline stats --pattern 'shop\\..*' --approximate-keys --json

Of a broker, records are read as consumers see them. Of log directories (--log-dirs: live ones or a
copy) they are read without a broker, and there is more to tell: batches, bytes on the disk, and how
transactions ended."""

_COLUMNS: Final = (
    "topic STRING, partition INT, offset BIGINT, timestampMs BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "stats",
        text="Throughput, sizes, keys, compaction and transactions of topics.",
        examples=EXAMPLES,
    )
    parser.add_argument("topic", nargs="*")
    parser.add_argument("--pattern", help="all topics whose whole name matches")
    parser.add_argument(
        "--log-dirs", action="append", metavar="DIR", help="read the files; may be repeated"
    )
    parser.add_argument(
        "--approximate-keys",
        action="store_true",
        help="estimate how many keys there are (2 %%), without a shuffle of all of them;"
        " nothing is told of single keys and of compaction then",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_broker_arguments(parser)
    add_spark_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Collect and print statistics. Raises PipelineError."""
    from pipeline.session import KAFKA
    from pipeline.showing import StatusLine, print_json
    from pipeline.stats.tables import show

    _check(args)
    with (
        session_of(args, "stats", () if args.log_dirs else (KAFKA,)) as session,
        StatusLine("Records are read and counted …"),
    ):
        stats = of_files(session, args) if args.log_dirs else of_broker(session, args)
    if args.html:
        write_page(stats, args.html)
    if args.json:
        print_json(stats.as_json())
    else:
        show(stats)
        if args.html:
            print(f"{args.html} has the plots.", file=sys.stderr)


def of_broker(session: Any, args: argparse.Namespace) -> "Stats":
    """Collect statistics with Spark's kafka source."""
    from pipeline.broker import matching, partitions_of_topics
    from pipeline.exact_rows import first_refused, is_refused_time
    from pipeline.stats.collecting import collect

    there = partitions_of_topics(args.bootstrap_server, pairs(args.kafka_option))
    topics = matching(there, args.topic, args.pattern)
    reader = session.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": args.bootstrap_server,
            "includeHeaders": "true",
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
            "subscribe": ",".join(topics),
            **{f"kafka.{key}": value for key, value in pairs(args.kafka_option).items()},
        }
    )
    said = f"topics at {args.bootstrap_server}"
    try:
        return collect(reader.load(), said, exact_keys=not args.approximate_keys)
    except Exception as error:
        if not is_refused_time(error):
            raise
        client = {**pairs(args.kafka_option), "bootstrap.servers": args.bootstrap_server}
        named = first_refused(session, client, topics) or "a record has a timestamp beyond Spark's"
        raise PipelineError(f"{named}; with --log-dirs such records count, too") from error


def of_files(session: Any, args: argparse.Namespace) -> "Stats":
    """Collect statistics with the direct reader, and those that only files show."""
    from dataclasses import replace

    from pipeline.source import register
    from pipeline.stats.collecting import collect
    from pipeline.stats.files import count_directories
    from storage.reader.scan import ScanError, ScanRequest, plan

    register(session)
    directories = tuple(str(Path(path).absolute()) for path in args.log_dirs)
    try:
        planned = plan(
            ScanRequest(
                directories=directories,
                topics=tuple(args.topic) or None,
                pattern=args.pattern,
            )
        )
    except ScanError as error:
        raise PipelineError(str(error)) from error
    of_topic: dict[str, list[str]] = {}
    for found in planned.partitions:
        of_topic.setdefault(found.topic, []).append(found.directory)
    if not of_topic:
        raise PipelineError(f"{', '.join(directories)}: no topics")
    chosen = {"subscribe": ",".join(of_topic)}
    frame = (
        session.read.format("pykafkalog")
        .schema(_COLUMNS)
        .options(**{"log.dirs": ",".join(directories), "includeHeaders": "true", **chosen})
        .load()
    )
    stats = collect(
        frame, f"topics in {', '.join(directories)}", exact_keys=not args.approximate_keys
    )
    facts = count_directories(session, of_topic)
    return replace(
        stats, topics=tuple(replace(topic, log=facts[topic.topic]) for topic in stats.topics)
    )


def write_page(stats: "Stats", path: Path) -> None:
    """Write the HTML page. Raises PipelineError if the file cannot be written."""
    from pipeline.stats.page import page

    made = f"Looked at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    try:
        path.write_text(page(stats, made))
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror or error}") from error


def _check(args: argparse.Namespace) -> None:
    if args.topic and args.pattern:
        raise PipelineError("topics or --pattern, not both")
    if not args.topic and not args.pattern and not args.log_dirs:
        raise PipelineError("name a topic, or --pattern, or --log-dirs")
    if args.html and find_spec("matplotlib") is None:
        raise PipelineError("--html needs matplotlib: python -m pip install 'pykafkalog[spark]'")
