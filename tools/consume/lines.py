"""How records are printed: as text, as JSON or by a template.

Text is made of a whole batch of messages at a time; what else is printed is made of records.
"""

import argparse
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tools.errors import CommandError
from tools.records.escapes import unescaped
from tools.records.json_lines import to_json
from tools.records.record import Record, record_of
from tools.records.template import NULL, compile_template, readable

Line = Callable[[Record], bytes]
Block = Callable[[Sequence[Any]], bytes]


@dataclass(frozen=True, slots=True)
class Form:
    """How a record is printed, and how a batch of the client's messages is."""

    line: Line
    block: Block


def line_format(args: argparse.Namespace, embedded: Collection[str] = ()) -> Form:
    """Return the format for the arguments; `embedded` as in `to_json`. Raises CommandError."""
    form = args.format
    if args.json or form == "json":
        if form not in (None, "json") or args.key_separator is not None:
            raise CommandError("--json has everything in it: leave out --format, --key-separator")
        return by_record(lambda record: to_json(record, embedded).encode() + b"\n")
    null = NULL if args.null_marker is None else args.null_marker
    if form is None or form == "text":
        return _text(args.key_separator, null.encode())
    if args.key_separator is not None:
        raise CommandError("--key-separator is for text: a template says what stands where")
    return by_record(compile_template(form, null))


def by_record(line: Line) -> Form:
    """Return the form that makes a batch line by line."""
    return Form(line, lambda messages: b"".join([line(record_of(one)) for one in messages]))


def _text(separator: str | None, null: bytes) -> Form:
    def shown(data: bytes | None) -> bytes:
        return null if data is None else readable(data)

    def value(record: Record) -> bytes:
        return shown(record.value) + b"\n"

    if separator is None:
        return Form(value, _values_at_once(value))
    between = unescaped(separator)

    def pair(record: Record) -> bytes:
        return shown(record.key) + between + shown(record.value) + b"\n"

    if not between or readable(between) != between:
        return by_record(pair)  # it could make text of halves that are none
    return Form(pair, _pairs_at_once(pair, between))


def _values_at_once(line: Line) -> Block:
    def block(messages: Sequence[Any]) -> bytes:
        values = [message.value() for message in messages]
        try:
            data = b"\n".join([*values, b""])
            data.decode()  # between line ends, all are UTF-8 or one is not
        except (TypeError, UnicodeDecodeError):  # a null, or bytes that are no text
            return b"".join([line(Record(value=value)) for value in values])
        return data

    return block


def _pairs_at_once(line: Line, between: bytes) -> Block:
    def block(messages: Sequence[Any]) -> bytes:
        pairs = [(message.key(), message.value()) for message in messages]
        try:
            data = b"".join([b"%b%b%b\n" % (key, between, value) for key, value in pairs])
            data.decode()
        except (TypeError, UnicodeDecodeError):
            return b"".join([line(Record(key=key, value=value)) for key, value in pairs])
        return data

    return block
