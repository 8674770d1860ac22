r"""Templates for records: text with fields in braces.

    {topic} {partition} {offset} {timestamp} {time} {key} {value} {headers} {header:NAME}

Keys, values and single headers may have a form: `{value:base64}`, `{value:hex}`, `{value:json}` (as
in JSON lines) and `{value:raw}` (unchanged bytes). Without a form, UTF-8 is unchanged and other
bytes become `base64:…`. `\n`, `\t`, `\r`, `\0`, `\xHH` and `\\` are escapes, `{{` and `}}` are
braces. A line end follows each record unless the template ends in `\n` or `\0` itself.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Final

from tools.errors import CommandError
from tools.moments import iso_time
from tools.records.escapes import PATTERN, escape
from tools.records.json_lines import encoded
from tools.records.record import Record

NULL: Final = r"\N"
"""Shown for a missing key or value, as in databases: it cannot be mistaken for "null" or "None"."""

Piece = Callable[[Record], bytes]
Form = Callable[[bytes], bytes]

_TOKEN: Final = re.compile(rf"\{{\{{|\}}\}}|{PATTERN}|\{{([^{{}}]*)\}}|[{{}}\\]", re.DOTALL)


def readable(data: bytes) -> bytes:
    """Return UTF-8 unchanged, other bytes as `base64:…`."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"base64:" + base64.b64encode(data)
    return data


FORMS: Final[dict[str, Form]] = {
    "": readable,
    "base64": base64.b64encode,
    "hex": lambda data: data.hex().encode(),
    "json": lambda data: json.dumps(encoded(data), ensure_ascii=False).encode(),
    "raw": lambda data: data,
}
_PLAIN: Final[dict[str, Piece]] = {
    "topic": lambda record: (record.topic or "").encode(),
    "partition": lambda record: str(record.partition).encode(),
    "offset": lambda record: str(record.offset).encode(),
    "timestamp": lambda record: str(-1 if record.timestamp is None else record.timestamp).encode(),
    "time": lambda record: (
        b"-" if record.timestamp is None else iso_time(record.timestamp).encode()
    ),
}


def compile_template(text: str, null: str = NULL) -> Piece:
    """Return a function from a record to the bytes of its line. Raises CommandError."""
    pieces: list[Piece] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces += [_fixed(text[end : token.start()].encode())] if token.start() > end else []
        pieces.append(_piece(token, null.encode()))
        end = token.end()
    pieces.append(_fixed(text[end:].encode()))
    if "%" in text and not any(token[1] for token in _TOKEN.finditer(text)):
        raise CommandError(f"{text!r} has no field: they stand in braces, as {{key}} {{value}}")
    if not text.endswith((r"\n", r"\0")):
        pieces.append(_fixed(b"\n"))
    return lambda record: b"".join([piece(record) for piece in pieces])


def _piece(token: re.Match[str], null: bytes) -> Piece:
    word = token[0]
    if word in ("{{", "}}"):
        return _fixed(word[:1].encode())
    if word.startswith("\\") and len(word) > 1:
        meant = escape(word)
        if meant is None:
            raise CommandError(f"a template knows no {word}; \\\\ is a backslash")
        return _fixed(meant)
    if token[1] is None:
        raise CommandError(f"a single {word} in a template; {word * 2} is one {word}")
    return _field(token[1], null)


def _field(word: str, null: bytes) -> Piece:
    name, _, form = word.partition(":")
    if not form and name in _PLAIN:
        return _PLAIN[name]
    if name == "headers" and not form:
        return lambda record: b",".join(
            header.encode() + b"=" + _shown(data, readable, null) for header, data in record.headers
        )
    if name == "header" and form:
        header, _, form = form.partition(":")
        shape = _form(form, word)
        return lambda record: _shown(dict(record.headers).get(header), shape, null)
    if name in ("key", "value"):
        shape = _form(form, word)
        null_shown = b"null" if form == "json" else null
        return lambda record: _shown(getattr(record, name), shape, null_shown)
    raise CommandError(
        f"a template knows no {{{word}}}; fields: {', '.join(_PLAIN)}, key, value, headers,"
        " header:NAME"
    )


def _form(form: str, word: str) -> Form:
    if form not in FORMS:
        known = ", ".join(name for name in FORMS if name)
        raise CommandError(f"a template knows no {{{word}}}; forms: {known}")
    return FORMS[form]


def _shown(data: bytes | None, form: Form, null: bytes) -> bytes:
    return null if data is None else form(data)


def _fixed(data: bytes) -> Piece:
    return lambda _record: data
