"""How a record is printed: as text, as JSON or by a template."""

import argparse
from collections.abc import Callable, Collection

from tools.errors import CommandError
from tools.records.json_lines import to_json
from tools.records.record import Record
from tools.records.template import NULL, compile_template, readable

Line = Callable[[Record], bytes]


def line_format(args: argparse.Namespace, embedded: Collection[str] = ()) -> Line:
    """Return the format for the arguments; `embedded` as in `to_json`. Raises CommandError."""
    form = args.format
    if args.json or form == "json":
        if form not in (None, "json") or args.key_separator is not None:
            raise CommandError("--json has everything in it: leave out --format, --key-separator")
        return lambda record: to_json(record, embedded).encode() + b"\n"
    null = NULL if args.null_marker is None else args.null_marker
    if form is None or form == "text":
        return _text(args.key_separator, null.encode())
    if args.key_separator is not None:
        raise CommandError("--key-separator is for text: a template says what stands where")
    return compile_template(form, null)


def _text(separator: str | None, null: bytes) -> Line:
    def shown(data: bytes | None) -> bytes:
        return null if data is None else readable(data)

    if separator is None:
        return lambda record: shown(record.value) + b"\n"
    between = separator.encode()
    return lambda record: shown(record.key) + between + shown(record.value) + b"\n"
