"""The arguments of `pykafkalog consume`, and the dispatch to its parts."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from tools.connection import (
    add_command,
    add_topic_option,
    admin_client,
    client_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError
from tools.whole_numbers import whole

EXAMPLES = r"""
  pykafkalog consume orders                       from now on, until Ctrl-C
  pykafkalog consume orders --from-beginning --exit   all that is there
  pykafkalog consume orders -n 10                 the last ten records
  pykafkalog consume orders payments '^log-.*'    several, and by a pattern
  pykafkalog consume orders --partition 0 --offset 1200 --max 5
  pykafkalog consume orders --from-timestamp 2h --until 2026-03-01T12:00:00
  pykafkalog consume orders --filter 'key~^eu-' --format '{time} {key}: {value}'
  pykafkalog consume orders --from-beginning --json --exit > orders.jsonl
  pykafkalog consume orders --group billing --exit    as a member, with commits

records as text:
  UTF-8 as it is, other bytes as base64:…, a null as \N (--null-marker).

--format json (or --json):
  topic, partition, offset, timestamp, timestamp_type, key, value, headers;
  bytes that are not UTF-8 are {"base64": "…"}, a null is null.
  `produce --json` reads it.

--avro needs fastavro (python -m pip install 'pykafkalog[avro]'); filters and
formats then see JSON, and with --json the value is an object, not text.

--format TEMPLATE:
  {topic} {partition} {offset} {timestamp} {time} {key} {value} {headers}
  {header:NAME}; forms as {value:json}, {value:base64}, {value:hex},
  {value:raw};  \n, \t, \0 and \\; {{ and }} are braces. A line end follows each
  record unless the template ends in one.

exit code: 0 done; 1 failed, standard error says why, or nobody reads the
output; 2 wrong arguments; 130 Ctrl-C"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "consume", text="Print the records of topics.", examples=EXAMPLES[1:]
    )
    parser.add_argument("topic", nargs="*", help="a topic, or a pattern that begins with ^")
    add_topic_option(parser)
    _add_bounds(parser.add_argument_group("what to read"))
    _add_output(parser.add_argument_group("what to print"))
    parser.set_defaults(run=run)


def _add_bounds(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument("-p", "--partition", metavar="N", help="only these: 0 or 0,2 or 0-3")
    parser.add_argument("--from-beginning", action="store_true", help="as --offset earliest")
    parser.add_argument(
        "-o", "--offset", metavar="O", help="an offset, -N for N before the end, earliest, latest"
    )
    parser.add_argument(
        "--from-timestamp",
        metavar="T",
        help="a date and time (UTC), @N for milliseconds since the epoch, or how long ago (2h)",
    )
    parser.add_argument(
        "-n", "--last", type=whole(64, least=0), metavar="N", help="the last N records, then end"
    )
    parser.add_argument(
        "--until",
        metavar="U",
        help="end before this offset, or before a time written as for --from-timestamp, at the"
        " latest at the `end` as it is now",
    )
    parser.add_argument("-e", "--exit", action="store_true", help="as --until end")
    parser.add_argument(
        "-c", "--max", type=whole(64, least=0), metavar="N", help="end after N records"
    )
    parser.add_argument("--group", help="join this group and commit what was printed")
    parser.add_argument(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        help="read_uncommitted shows records of open and aborted transactions, too (default:"
        " read_committed)",
    )
    parser.add_argument(  # what the default was called before
        "--read-committed",
        dest="isolation_level",
        action="store_const",
        const="read_committed",
        help=argparse.SUPPRESS,
    )


def _add_output(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="F",
        help="key=TEXT, key~REGEX, 'key is null', with != and !~; value, header.NAME too",
    )
    parser.add_argument("-f", "--format", metavar="FORMAT", help="text, json or a template")
    parser.add_argument("-J", "--json", action="store_true", help="as --format json")
    parser.add_argument(
        "-K",
        "--key-separator",
        metavar="S",
        help=r"print the key and S (\t, \n, \xHH) before the value",
    )
    parser.add_argument(
        "--avro", action="store_true", help="values are Avro with a schema's id: print JSON"
    )
    parser.add_argument("--avro-key", action="store_true", help="keys are")
    parser.add_argument(
        "--schema-registry", metavar="URL", help="with --avro (default: http://localhost:8081)"
    )
    parser.add_argument("--null-marker", metavar="S", help=r"print a null as S (default: \N)")


def run(args: argparse.Namespace) -> None:
    """Print records until the end that the arguments name. Raises CommandError."""
    from tools.consume import filters, lines
    from tools.consume.reading import Reading

    _require_sense(args)
    decode, decoded = _decoder(args)
    form = lines.line_format(args, decoded)
    chosen = filters.parse_filters(args.filter) if args.filter else None
    if decode is not None:
        form = lines.by_record(_after(decode, form.line))
        chosen = None if chosen is None else _after(decode, chosen)
    admin = admin_client(args)
    with refusals_as_sentences():
        reading = Reading(admin, args, client_settings(args), time.time_ns() // 1_000_000)
        try:
            _print(reading, args, form, chosen)
        finally:
            reading.close()


def _decoder(args: argparse.Namespace) -> tuple[Any, tuple[str, ...]]:
    """Return the Avro decoder, or None, and the fields that it decodes. Raises CommandError."""
    fields = ("key",) * args.avro_key + ("value",) * args.avro
    if not fields:
        if args.schema_registry is not None:
            raise CommandError("--schema-registry goes with --avro and --avro-key")
        return None, ()
    from tools.avro.decoding import AvroDecoder
    from tools.avro.registry import DEFAULT_URL, Registry

    return AvroDecoder(Registry(args.schema_registry or DEFAULT_URL).schemas, fields), fields


def _after(decode: Any, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `function` applied after `decode`."""
    return lambda record: function(decode(record))


def _require_sense(args: argparse.Namespace) -> None:
    args.topic += args.named
    if not args.topic:
        raise CommandError("which topic? `pykafkalog topics` lists what there is")
    starts = [
        option
        for option, given in (
            ("--from-beginning", args.from_beginning),
            ("--offset", args.offset is not None),
            ("--from-timestamp", args.from_timestamp is not None),
            ("-n", args.last is not None),
        )
        if given
    ]
    if len(starts) > 1:
        raise CommandError(f"{' and '.join(starts)}: only one of them says where to begin")
    if args.exit and args.until is not None:
        raise CommandError("--exit and --until: only one of them says where to end")
    if args.group is None:
        return
    if args.partition is not None or (starts and not args.from_beginning):
        raise CommandError(
            f"--group goes on where the group is, without {(*starts, '--partition')[0]};"
            " `pykafkalog groups --reset` sets its offsets"
        )
    if args.until not in (None, "end"):
        raise CommandError("--group can end at the end (--exit) or after --max records")


def _print(reading: Any, args: argparse.Namespace, form: Any, chosen: Any) -> None:
    from tools.output import Output
    from tools.progress import progress_bar

    if args.max == 0 or args.last == 0:
        return
    out = Output()
    if args.last is not None:
        out.write(b"".join(map(form.line, reading.last(args.last, chosen)[: args.max])))
        out.flush()
        return
    seen = 0
    left = sys.maxsize if args.max is None else args.max
    total = None if sys.stdout.isatty() else reading.total
    with progress_bar("reading", total) as advance:
        for messages in reading.batches():
            if chosen is None:
                done = messages[:left]
                printed, data = len(done), form.block(done)
            else:
                done, lines = _chosen(messages, chosen, form.line, left)
                printed, data = len(lines), b"".join(lines)
            out.write(data)
            out.flush()
            out.require_reader()
            reading.printed(done)
            seen += len(done)
            left -= printed
            advance(seen, absolute=True)
            if not left:
                return


def _chosen(
    messages: list[Any], chosen: Callable[[Any], bool], line: Callable[[Any], bytes], most: int
) -> tuple[list[Any], list[bytes]]:
    """Return the messages up to the last of at most `most` that are chosen, and these as lines."""
    from tools.records.record import record_of

    lines: list[bytes] = []
    for number, message in enumerate(messages, 1):
        record = record_of(message)
        if chosen(record):
            lines.append(line(record))
            if len(lines) == most:
                return messages[:number], lines
    return messages, lines
