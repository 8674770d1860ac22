"""`pykafkalog produce`: lines of standard input or files become records."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tools.connection import add_command, admin_client, client_settings, refusals_as_sentences
from tools.errors import CommandError

EXAMPLES = """\
  echo 'hello' | pykafkalog produce greetings
  pykafkalog produce orders --key-separator : < orders.txt       key:value lines
  pykafkalog produce logs --compression zstd --file big.jsonl    with a progress bar"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands, "produce", text="Write lines to a topic, a record each.", examples=EXAMPLES
    )
    parser.add_argument("topic")
    parser.add_argument("--file", type=Path, help="read lines from here instead of standard input")
    parser.add_argument(
        "--key-separator", metavar="S", help="what stands before S in a line is the key"
    )
    parser.add_argument("--partition", type=int, default=-1, help="always this one")
    parser.add_argument(
        "--compression", default="none", choices=("none", "gzip", "snappy", "lz4", "zstd")
    )
    parser.add_argument("--acks", default="all", choices=("0", "1", "all"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Send every line; the last line printed says how many were acknowledged."""
    admin_client(args)
    if args.file is None:
        _send(args, sys.stdin.buffer, None)
        return
    try:
        with args.file.open("rb") as lines:
            _send(args, lines, args.file.stat().st_size)
    except OSError as error:
        raise CommandError(f"cannot read {args.file}: {error.strerror}") from None


def _split(lines: IO[bytes], separator: bytes | None) -> Iterator[tuple[bytes | None, bytes, int]]:
    """(key, value, length of the line in bytes) for each line."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip(b"\r\n")
        if separator is None:
            yield None, text, len(line)
            continue
        key, found, value = text.partition(separator)
        if not found:
            raise CommandError(f"line {number} has no {separator.decode()!r} in it")
        yield key, value, len(line)


def _send(args: argparse.Namespace, lines: IO[bytes], total_bytes: int | None) -> None:
    from confluent_kafka import Producer

    from tools.progress import progress_bar

    settings = client_settings(
        args, acks=args.acks, **{"compression.type": args.compression, "linger.ms": 20}
    )
    producer = Producer(settings)
    failures: list[Any] = []
    sent = 0
    extra = {} if args.partition < 0 else {"partition": args.partition}

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error)

    separator = args.key_separator.encode() if args.key_separator else None
    with progress_bar("sending", total_bytes, bytes_=True) as advance, refusals_as_sentences():
        for key, value, length in _split(lines, separator):
            while True:
                try:
                    producer.produce(
                        args.topic, key=key, value=value, on_delivery=delivered, **extra
                    )
                    break
                except BufferError:  # the client's queue is full
                    producer.poll(0.1)
            sent += 1
            advance(length)
            producer.poll(0)
            if failures:
                break
        left = producer.flush(60)
    if failures or left:
        raise CommandError(
            f"{len(failures) + left} of {sent} records were not acknowledged"
            + (f": {failures[0].str()}" if failures else " in 60 s")
        )
    print(f"{sent:,} records to {args.topic}", file=sys.stderr)
