"""Parses lines to records: text with keys, or JSON as `consume --json` writes it."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from tools.errors import CommandError
from tools.moments import parse_moment
from tools.records.escapes import unescaped
from tools.records.json_lines import BadLine, from_json
from tools.records.record import Record


class Line(NamedTuple):
    """A record and where it came from."""

    record: Record
    source: str
    number: int
    length: int
    """Bytes in the input, with the line's end."""

    @property
    def name(self) -> str:
        """The line's name in a sentence."""
        return line_name(self.source, self.number)


class BadInput(Exception):
    """A line is not a record; the text names the line."""


Parse = Callable[[bytes], Record]


def line_name(source: str, number: int) -> str:
    """Return `line 7`, or `line 7 of orders.txt`."""
    return f"line {number} of {source}" if source else f"line {number}"


def read_lines(files: Iterable[tuple[str, IO[bytes]]], parse: Parse) -> Iterator[Line]:
    """Yield each line of each file as a record. Raises BadInput."""
    for source, file in files:
        for number, line in enumerate(file, 1):
            try:
                record = parse(line.removesuffix(b"\n").removesuffix(b"\r"))
            except BadLine as error:
                raise BadInput(f"{line_name(source, number)} {error}") from None
            yield Line(record, source, number, len(line))


def parser_of(args: argparse.Namespace) -> Parse:
    """Return the parser of lines that the arguments describe. Raises CommandError."""
    as_json = args.json or args.format == "json"
    if as_json and (args.key_separator is not None or args.null_marker is not None):
        raise CommandError("JSON lines have keys and nulls in them: no --key-separator with them")
    fixed = Record(
        topic=args.topic,
        partition=args.partition if args.partition >= 0 else None,
        timestamp=None if args.timestamp is None else parse_moment(args.timestamp),
        key=None if args.key is None else args.key.encode(),
        headers=tuple(_header(text) for text in args.header),
    )
    try:
        _checked(fixed if fixed.topic is not None or not as_json else fixed._replace(topic=""))
    except BadLine as error:
        raise CommandError(f"every record {error}") from None
    if as_json:
        return _json_parser(fixed, any_partition=args.any_partition)
    return _text_parser(fixed, args.key_separator, args.null_marker)


def _json_parser(fixed: Record, *, any_partition: bool) -> Parse:
    def parse(line: bytes) -> Record:
        own = from_json(line)
        partition = own.partition if fixed.partition is None else fixed.partition
        return _checked(
            Record(
                topic=fixed.topic or own.topic,
                partition=None if any_partition else partition,
                timestamp=own.timestamp if fixed.timestamp is None else fixed.timestamp,
                key=own.key if fixed.key is None else fixed.key,
                value=own.value,
                headers=own.headers + fixed.headers,
            )
        )

    return parse


def _checked(record: Record) -> Record:
    if record.topic is None:
        raise BadLine("names no topic: name it before the file, or in the line")
    if record.timestamp is not None and not 0 < record.timestamp < 1 << 63:
        raise BadLine(f"has the timestamp {record.timestamp}, which the client library cannot send")
    if record.partition is not None and not 0 <= record.partition < 1 << 31:
        raise BadLine(f"has the partition {record.partition}")
    if any("\0" in name for name, _ in record.headers):
        raise BadLine("has a header name with a zero byte, which the client library cannot send")
    return record


def _text_parser(fixed: Record, key_separator: str | None, null_marker: str | None) -> Parse:
    separator = unescaped(key_separator) if key_separator else None
    null = None if null_marker is None else null_marker.encode()

    topic, partition, _, timestamp, _, fixed_key, _, headers = fixed

    def parse(line: bytes) -> Record:
        key, value = None, line
        if separator is not None:
            key, found, value = line.partition(separator)
            if not found:
                raise BadLine(f"has no {key_separator!r} in it")
        return Record(
            topic,
            partition,
            None,
            timestamp,
            None,
            fixed_key if fixed_key is not None else None if key == null else key,
            None if value == null else value,
            headers,
        )

    return parse


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"--header {text}: not of the form NAME=VALUE")
    return name, value.encode()
