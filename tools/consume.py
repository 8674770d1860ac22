"""`pykafkalog consume`: records of a topic on standard output."""

import argparse
import json
import sys
from typing import Any

from tools.connection import (
    TIMEOUT_S,
    add_command,
    admin_client,
    client_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog consume orders                             from now on, until Ctrl-C
  pykafkalog consume orders --from-beginning --exit     everything that is there, then end
  pykafkalog consume orders --from-beginning --max 10 --json
  pykafkalog consume orders --group billing             as a member of a group, with commits
  pykafkalog consume orders --exit --from-beginning > orders.txt      with a progress bar"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands, "consume", text="Print the records of a topic.", examples=EXAMPLES
    )
    parser.add_argument("topic")
    parser.add_argument("--from-beginning", action="store_true")
    parser.add_argument("--group", help="join this group and commit what was printed")
    parser.add_argument("--max", type=int, help="end after so many records")
    parser.add_argument(
        "--exit", action="store_true", help="end at the end of the topic as it is now"
    )
    parser.add_argument("--read-committed", action="store_true", help="hide aborted transactions")
    parser.add_argument(
        "--json", action="store_true", help="everything about a record, one object a line"
    )
    parser.add_argument("--key-separator", metavar="S", help="print the key and S before the value")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print records until the end that was asked for."""
    from confluent_kafka import Consumer

    from tools.progress import progress_bar

    admin = admin_client(args)
    topics = admin.list_topics(timeout=TIMEOUT_S).topics
    if args.topic not in topics:
        raise CommandError(f"there is no topic {args.topic}")
    if args.exit and args.group:
        raise CommandError("--exit reads all partitions itself and cannot be used with --group")
    settings = {
        "group.id": args.group or "pykafkalog-consume",
        "auto.offset.reset": "earliest" if args.from_beginning else "latest",
        "enable.auto.commit": bool(args.group),
        "isolation.level": "read_committed" if args.read_committed else "read_uncommitted",
        "enable.partition.eof": args.exit,
    }
    with refusals_as_sentences():
        consumer = Consumer(client_settings(args, **settings))
        total = _start(consumer, args, topics[args.topic].partitions)
        if args.max is not None:
            total = args.max if total is None else min(total, args.max)
        quiet = sys.stdout.isatty() or total is None
        with progress_bar("reading", None if quiet else total) as advance:
            try:
                _print_records(consumer, args, len(topics[args.topic].partitions), advance)
            finally:
                sys.stdout.flush()
                consumer.close()


def _start(consumer: Any, args: argparse.Namespace, partitions: dict[int, Any]) -> int | None:
    """Subscribe or assign; how many offsets lie ahead where that is known."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    if args.group:
        consumer.subscribe([args.topic])
        return None
    first = OFFSET_BEGINNING if args.from_beginning else OFFSET_END
    consumer.assign([TopicPartition(args.topic, number, first) for number in partitions])
    if not args.exit:
        return None
    if not args.from_beginning:
        return 0
    total = 0
    for number in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(args.topic, number), TIMEOUT_S)
        total += high - low
    return total


def _print_records(consumer: Any, args: argparse.Namespace, partitions: int, advance: Any) -> None:
    from confluent_kafka import KafkaError

    printed, ended = 0, set()
    while args.max is None or printed < args.max:
        for message in consumer.consume(
            500 if args.max is None else min(500, args.max - printed), 0.5
        ):
            error = message.error()
            if error is None:
                print(_line(message, args))
                printed += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise CommandError(error.str())
        advance(printed, absolute=True)
        if args.exit and len(ended) == partitions:
            return


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _line(message: Any, args: argparse.Namespace) -> str:
    value = _text(message.value())
    if args.json:
        return json.dumps(
            {
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": _text(message.key()),
                "value": value,
                "headers": [[name, _text(data)] for name, data in message.headers() or ()],
            }
        )
    shown = "null" if value is None else value
    if args.key_separator is not None:
        return f"{_text(message.key())}{args.key_separator}{shown}"
    return shown
