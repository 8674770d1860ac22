"""The arguments of `pykafkalog perf`, and the dispatch to its parts."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.connection import (
    AS_KAFKA,
    READ_ON,
    add_connection_arguments,
    client_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError
from tools.usage import command_parser
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog perf produce speed --records 100000
  pykafkalog perf produce speed --seconds 3 --rate 5000 --size 200
  pykafkalog perf produce speed --records 100000 --compression lz4 --acks 1
  pykafkalog perf consume speed
  pykafkalog perf consume speed --json
  pykafkalog perf latency speed --records 500 --plot latency.svg

produce  how fast one producer sends; a latency is the time from handing a
         record to the client until it is acknowledged
consume  how fast one consumer reads the topic, from its beginning to its end
latency  end to end: one record at a time, until a consumer has it

What is measured is one client written in Python, which is often what limits
it. Records that are sent stay in the topic. Bytes are those of values.

exit code: 0 done; 1 it could not be measured, or records failed; 2 wrong
arguments; 130 Ctrl-C: what was measured until then is told"""

SIZE = 1000
RECORDS = 100_000
LATENCY_RECORDS = 1000


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = command_parser(
        commands, "perf", text="Measure how fast a broker is.", examples=EXAMPLES
    )
    tests = parser.add_subparsers(dest="test", metavar="TEST", required=True)
    produce = _add_test(tests, "produce", "send records of one size")
    _add_sizes(produce)
    produce.add_argument(
        "--compression", default="none", choices=("none", "gzip", "snappy", "lz4", "zstd")
    )
    produce.add_argument("--acks", default="all", choices=("0", "1", "all"))
    produce.add_argument(
        "--linger",
        type=float,
        default=5.0,
        metavar="MS",
        help="how long a batch waits (5)",
    )
    produce.add_argument(
        "--batch-size", type=whole(32, least=1), default=1_000_000, metavar="BYTES", help="at most"
    )
    _add_test(tests, "consume", "read a topic")
    _add_sizes(_add_test(tests, "latency", "send and read one record at a time"))


def _add_test(tests: Any, name: str, text: str) -> argparse.ArgumentParser:
    epilog = "`pykafkalog perf --help` has examples, exit codes, and what is measured."
    parser: argparse.ArgumentParser = tests.add_parser(
        name, help=text, description=text, epilog=epilog
    )
    parser.add_argument("topic")
    add_connection_arguments(parser)
    parser.add_argument("--records", type=whole(64, least=1), metavar="N", help="end after so many")
    parser.add_argument("--seconds", type=_above_zero, metavar="S", help="end after so long")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it: .svg or .png")
    parser.set_defaults(run=run)
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size",
        type=whole(32, least=1),
        default=SIZE,
        metavar="BYTES",
        help=f"of a value ({SIZE})",
    )
    parser.add_argument("--rate", type=_above_zero, metavar="R", help="records per second at most")


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def run(args: argparse.Namespace) -> int:
    """Measure, print, draw; return 130 if interrupted. Raises CommandError if records failed."""
    from tools.perf.interruption import handled
    from tools.perf.plot import draw, require_plot
    from tools.perf.report import Progress, lines
    from tools.perf.results import result_of
    from tools.reachability import require_broker

    if args.plot is not None:
        require_plot(args.plot)
    settings = client_settings(args)
    require_broker(settings)
    progress = Progress()
    started: list[Any] = []
    try:
        with refusals_as_sentences(), handled(lambda: _interrupt(started)):
            _TESTS[args.test](args, settings, started, progress)
    finally:
        progress.end()
    result = result_of(
        started[0],
        test=args.test,
        topic=args.topic,
        settings=_shown(args),
        ended=time.monotonic(),
    )
    if args.json:
        print(json.dumps(result.as_json()))
    else:
        print("\n".join(lines(result, picture=sys.stdout.isatty())))
    if args.plot is not None:
        draw(result, args.plot)
    if result.failed:
        raise CommandError(f"{result.failed} records failed, the first: {result.failure}")
    return 130 if started[0].interrupted else 0


def _interrupt(started: list[Any]) -> bool:
    for measure in started:
        measure.interrupted = True
    return bool(started)


def _shown(args: argparse.Namespace) -> dict[str, Any]:
    names = ("records", "seconds", "size", "rate", "compression", "acks", "linger", "batch_size")
    return {name: getattr(args, name) for name in names if getattr(args, name, None) is not None}


def _measure(started: list[Any]) -> Any:
    from tools.perf.measure import Measure

    started.append(Measure(time.monotonic()))
    return started[0]


def _wanted(args: argparse.Namespace, records: int | None) -> Any:
    """Return the run's limits; `records` applies if the arguments give neither number nor time."""
    from tools.perf.wanted import Wanted

    asked = args.records is not None or args.seconds is not None
    return Wanted(
        topic=args.topic,
        size=getattr(args, "size", 0),
        records=args.records if asked else records,
        seconds=args.seconds,
        rate=getattr(args, "rate", None),
    )


def _produce(
    args: argparse.Namespace, settings: dict[str, Any], started: list[Any], progress: Any
) -> None:
    from confluent_kafka import Producer

    from tools.perf.producing import produce_records
    from tools.presence import Presence

    presence = Presence(settings)
    producer = Producer(
        {
            **AS_KAFKA,
            "acks": args.acks,
            "compression.type": args.compression,
            "linger.ms": args.linger,
            "batch.size": args.batch_size,
            "queue.buffering.max.messages": 100_000,
            "error_cb": presence.on_error,
        }
        | settings
    )
    try:
        # Get the first metadata before the clock starts; some brokers make the topic, too.
        producer.list_topics(args.topic, timeout=15)
        produce_records(
            producer,
            presence,
            _measure(started),
            _wanted(args, RECORDS),
            progress.tell,
        )
    finally:
        producer.purge()


def _consumer(settings: dict[str, Any], presence: Any) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            **READ_ON,
            "group.id": "pykafkalog-perf",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "error_cb": presence.on_error,
        }
        | settings
    )


def _consume(
    args: argparse.Namespace, settings: dict[str, Any], started: list[Any], progress: Any
) -> None:
    from tools.perf.consuming import consume_records
    from tools.presence import Presence

    presence = Presence(settings)
    consumer = _consumer(settings, presence)
    try:
        consume_records(
            consumer,
            presence,
            lambda: _measure(started),
            _wanted(args, None),
            progress.tell,
        )
    finally:
        consumer.close()


def _latency(
    args: argparse.Namespace, settings: dict[str, Any], started: list[Any], progress: Any
) -> None:
    from confluent_kafka import Producer

    from tools.perf.end_to_end import measure_latency
    from tools.presence import Presence

    presence = Presence(settings)
    producer = Producer(
        {**AS_KAFKA, "linger.ms": 0, "acks": "all", "error_cb": presence.on_error} | settings
    )
    consumer = _consumer(settings, presence)
    try:
        measure_latency(
            producer,
            consumer,
            presence,
            lambda: _measure(started),
            _wanted(args, LATENCY_RECORDS),
            progress.tell,
        )
    finally:
        producer.purge()
        consumer.close()


_TESTS: dict[str, Callable[..., None]] = {
    "produce": _produce,
    "consume": _consume,
    "latency": _latency,
}
