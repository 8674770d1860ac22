"""The arguments of `pykafkalog produce`, and the dispatch to its parts."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tools.connection import (
    AS_KAFKA,
    add_command,
    add_topic_option,
    admin_client,
    client_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError
from tools.whole_numbers import whole

EXAMPLES = r"""
  echo 'hello' | pykafkalog produce greetings
  pykafkalog produce orders --key-separator : < orders.txt     key:value lines
  pykafkalog produce logs --compression zstd --file a.log --file b.log
  pykafkalog produce orders --key-separator : --null-marker '\N' < orders.txt
  pykafkalog produce orders --header source=import < orders.txt
  pykafkalog produce copy --json < orders.jsonl    as consume --json writes it
  pykafkalog produce orders --transactional-id import --json < orders.jsonl

JSON lines:
  {"key": "a", "value": "b", "headers": [["h", "c"]],
   "timestamp": 1700000000000}
  Only the value has to be there; null makes a tombstone, {"base64": "/w=="}
  stands for bytes that are not UTF-8. A partition in the line is used, the
  topic in the line where none is named before; offset and timestamp_type are
  left aside.

A bad line ends it: it is named with the reason, and how many records were sent.
With --transactional-id all of them are, or none (--transaction-size N: by N).

exit code: 0 all were acknowledged; 1 not all, standard error says why; 2 wrong
arguments; 130 Ctrl-C"""

TRANSACTION_MS = 900_000
"""The longest that brokers allow by default (`transaction.max.timeout.ms`), for large files."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "produce", text="Write lines to a topic, a record each.", examples=EXAMPLES[1:]
    )
    parser.add_argument("topic", nargs="?", help="may be left out where JSON lines name it")
    add_topic_option(parser)
    parser.add_argument(
        "--file",
        type=Path,
        action="append",
        metavar="FILE",
        help="read lines from here instead of standard input; several times for several",
    )
    _add_records(parser.add_argument_group("what a line is"))
    _add_sending(parser.add_argument_group("how it is sent"))
    parser.set_defaults(run=run)


def _add_records(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument("--format", choices=("text", "json"), help="text is the default")
    parser.add_argument("--json", action="store_true", help="as --format json")
    parser.add_argument(
        "-K",
        "--key-separator",
        metavar="S",
        help=r"what stands before S (\t, \n, \xHH) in a line is the key",
    )
    parser.add_argument("--null-marker", metavar="S", help="a key or value that is S is null")
    parser.add_argument("-k", "--key", metavar="K", help="the key of every record")
    parser.add_argument(
        "-H",
        "--header",
        action="append",
        default=[],
        metavar="N=V",
        help="a header of every record",
    )
    parser.add_argument(
        "--timestamp", metavar="T", help="of every record: a date and time (UTC) or milliseconds"
    )


def _add_sending(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument(
        "-p", "--partition", type=whole(32), default=-1, metavar="N", help="always this one"
    )
    parser.add_argument(
        "--any-partition", action="store_true", help="even where JSON lines name one"
    )
    parser.add_argument(
        "-z",
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        help="how batches are compressed (default: none)",
    )
    parser.add_argument("--acks", choices=("0", "1", "all"), help="default: all")
    parser.add_argument("--transactional-id", metavar="ID", help="all or nothing")
    parser.add_argument(
        "--transaction-size", type=whole(32), metavar="N", help="commit after every N records"
    )


def run(args: argparse.Namespace) -> None:
    """Send every line, then print how many records were sent. Raises CommandError."""
    from tools.produce.lines import parser_of, read_lines

    _require_sense(args)
    parse = parser_of(args)
    admin_client(args)
    with _opened(args.file) as (files, total_bytes), refusals_as_sentences():
        sent = _send(args, read_lines(files, parse), total_bytes)
    shown = f"{sent:,}" if sys.stderr.isatty() else str(sent)
    noun = "record" if sent == 1 else "records"
    print(f"{shown} {noun}" + (f" to {args.topic}" if args.topic else ""), file=sys.stderr)


def _require_sense(args: argparse.Namespace) -> None:
    topics = [*([] if args.topic is None else [args.topic]), *args.named]
    if len(topics) > 1:
        raise CommandError(f"{' and '.join(topics)}: lines go to one topic")
    args.topic = topics[0] if topics else None
    if args.topic is None and not (args.json or args.format == "json"):
        raise CommandError("name the topic: only JSON lines may name it themselves")
    if args.json and args.format == "text":
        raise CommandError("--json and --format text: only one of them says what a line is")
    if args.any_partition and args.partition >= 0:
        raise CommandError("--partition and --any-partition: only one of them says where to")
    if args.transaction_size is not None:
        if args.transactional_id is None:
            raise CommandError("--transaction-size goes with --transactional-id")
        if args.transaction_size < 1:
            raise CommandError("--transaction-size is at least 1")
    if args.transactional_id is not None and args.acks not in (None, "all"):
        raise CommandError("a transaction needs --acks all")


@contextmanager
def _opened(paths: list[Path] | None) -> Iterator[tuple[Any, int | None]]:
    """Yield (names and files, opened one after the other; their total size or None)."""
    if not paths:
        yield [("", sys.stdin.buffer)], None
        return
    try:
        total = sum(path.stat().st_size for path in paths)
        for path in paths:
            path.open("rb").close()
    except OSError as error:
        raise CommandError(f"cannot read {error.filename}: {error.strerror}") from None

    def files() -> Iterator[tuple[str, IO[bytes]]]:
        for path in paths:
            with path.open("rb") as file:
                yield (str(path), file)

    try:
        yield files(), total
    except OSError as error:
        raise CommandError(f"cannot read on: {error.strerror}") from None


def _send(args: argparse.Namespace, lines: Any, total_bytes: int | None) -> int:
    from confluent_kafka import Producer

    from tools.presence import Presence
    from tools.produce.delivery import Delivery, send_all
    from tools.produce.transactions import send_in_transactions
    from tools.progress import progress_bar

    settings = client_settings(args)
    presence = Presence(settings)
    defaults: dict[str, Any] = {**AS_KAFKA, "acks": "all", "linger.ms": 20}
    if args.transactional_id is not None:
        defaults["transaction.timeout.ms"] = TRANSACTION_MS
    named = {
        "acks": args.acks,
        "compression.type": args.compression,
        "transactional.id": args.transactional_id,
    }
    options = {name: value for name, value in named.items() if value is not None}
    own = {"error_cb": presence.on_error, "delivery.report.only.error": True}
    producer = Producer(defaults | settings | options | own)
    delivery = Delivery(producer, presence)
    try:
        with progress_bar("sending", total_bytes, bytes_=True) as advance:
            if args.transactional_id is None:
                return send_all(delivery, lines, advance)
            return send_in_transactions(producer, delivery, lines, args.transaction_size, advance)
    finally:
        # Drop queued records: librdkafka would wait for them at the end of the process.
        producer.purge()
