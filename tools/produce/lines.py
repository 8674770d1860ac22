"""Lines made records: text with keys, or JSON as `consume --json` writes it."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO

from tools.errors import CommandError
from tools.moments import parse_moment
from tools.records.json_lines import BadLine, from_json
from tools.records.record import Record


@dataclass(frozen=True, slots=True)
class Line:
    """A record and where it came from."""

    record: Record
    source: str
    number: int
    length: int
    """Bytes in the input, with the line's end."""

    @property
    def name(self) -> str:
        """For a sentence."""
        return line_name(self.source, self.number)


class BadInput(Exception):
    """A line that is no record, in a sentence that names it."""


Parse = Callable[[bytes], Record]


def line_name(source: str, number: int) -> str:
    """`line 7`, or `line 7 of orders.txt`."""
    return f"line {number} of {source}" if source else f"line {number}"


def read_lines(files: Iterable[tuple[str, IO[bytes]]], parse: Parse) -> Iterator[Line]:
    """Each line of each file. Raises BadInput."""
    for source, file in files:
        for number, line in enumerate(file, 1):
            try:
                record = parse(line.removesuffix(b"\n").removesuffix(b"\r"))
            except BadLine as error:
                raise BadInput(f"{line_name(source, number)} {error}") from None
            yield Line(record, source, number, len(line))


def parser_of(args: argparse.Namespace) -> Parse:
    """What the arguments ask for. Raises CommandError."""
    as_json = args.json or args.format == "json"
    if as_json and (args.key_separator is not None or args.null_marker is not None):
        raise CommandError("JSON lines have keys and nulls in them: no --key-separator with them")
    parse = from_json if as_json else _text_parser(args)
    key = None if args.key is None else args.key.encode()
    headers = tuple(_header(text) for text in args.header)
    timestamp = None if args.timestamp is None else parse_moment(args.timestamp)
    fixed_partition = args.partition if args.partition >= 0 else None

    def record_of(line: bytes) -> Record:
        record = parse(line)
        return _checked(
            replace(
                record,
                topic=args.topic or record.topic,
                partition=(
                    None
                    if args.any_partition
                    else record.partition
                    if fixed_partition is None
                    else fixed_partition
                ),
                timestamp=record.timestamp if timestamp is None else timestamp,
                key=record.key if key is None else key,
                headers=(*record.headers, *headers),
            )
        )

    return record_of


def _checked(record: Record) -> Record:
    if record.topic is None:
        raise BadLine("names no topic: name it before the file, or in the line")
    if record.timestamp is not None and record.timestamp <= 0:
        raise BadLine(f"has the timestamp {record.timestamp}, which the client library cannot send")
    if record.partition is not None and not 0 <= record.partition < 1 << 31:
        raise BadLine(f"has the partition {record.partition}")
    if any("\0" in name for name, _ in record.headers):
        raise BadLine("has a header name with a zero byte, which the client library cannot send")
    return record


def _text_parser(args: argparse.Namespace) -> Parse:
    separator = None if not args.key_separator else args.key_separator.encode()
    null = None if args.null_marker is None else args.null_marker.encode()

    def data(text: bytes) -> bytes | None:
        return None if text == null else text

    def parse(line: bytes) -> Record:
        if separator is None:
            return Record(value=data(line))
        key, found, value = line.partition(separator)
        if not found:
            raise BadLine(f"has no {separator.decode()!r} in it")
        return Record(key=data(key), value=data(value))

    return parse


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"--header {text}: not of the form NAME=VALUE")
    return name, value.encode()
