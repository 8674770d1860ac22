"""Which records are printed.

    key=a  key!=a  key~^a  key!~^a     the whole text, or a regular expression somewhere in it
    key is null    value is not null
    header.NAME=a                      the last header of that name

A record must pass every filter. A missing field is null: it equals and matches nothing.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from tools.errors import CommandError
from tools.records.record import Record

Filter = Callable[[Record], bool]
Field = Callable[[Record], bytes | None]

_FORM: Final = re.compile(
    r"(key|value|header\.[^=!~]+?)(?:(=|!=|~|!~)(.*)|\s+is\s+(not\s+)?null\s*)", re.DOTALL
)


def parse_filters(texts: Sequence[str]) -> Filter:
    """Return one filter that requires all of `texts`. Raises CommandError."""
    filters = [_parse(text) for text in texts]
    return lambda record: all(one(record) for one in filters)


def _parse(text: str) -> Filter:
    found = _FORM.fullmatch(text)
    if found is None:
        raise CommandError(
            f"--filter {text!r} is not of the form key=TEXT, key!=TEXT, key~REGEX, key!~REGEX or"
            " 'key is [not] null' (or value, header.NAME)"
        )
    name, operator, operand, is_not = found.groups()
    field = _field(name)
    if operator is None:
        return lambda record: (field(record) is None) != bool(is_not)
    holds = _test(operator.removeprefix("!"), operand)
    negated = operator.startswith("!")
    return lambda record: holds(field(record)) != negated


def _field(name: str) -> Field:
    if name == "key":
        return lambda record: record.key
    if name == "value":
        return lambda record: record.value
    header = name.removeprefix("header.")
    return lambda record: dict(record.headers).get(header)


def _test(operator: str, operand: str) -> Callable[[bytes | None], bool]:
    if operator == "=":
        wanted = operand.encode()
        return lambda data: data == wanted
    try:
        pattern = re.compile(operand.encode())
    except re.error as error:
        raise CommandError(f"{operand!r} is no regular expression: {error}") from None
    return lambda data: data is not None and pattern.search(data) is not None
