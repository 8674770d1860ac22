"""Records of format 2 as lines: the fields and words of DumpLogSegments, from columns."""

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from protocol.records.header import TIMESTAMP_TYPE_BIT
from storage.reader.columns import Columns, RecordChunk
from tools.dump_log import control_records
from tools.dump_log.batch_lines import TIMESTAMP_TYPES, json_template
from tools.dump_log.options import Options

Texts = list[str | None]

_TEMPLATE: Final = "| offset: %d %s: %d keySize: %d valueSize: %d sequence: %d headerKeys: %s"
_JSON: Final = json_template(_TEMPLATE.removeprefix("| ")).removesuffix("}")
_HEADERS: Final = 10_000
"""A record with more headers shows only their number."""
_dumps = json.JSONEncoder(ensure_ascii=False).encode


def lines_of(chunk: RecordChunk, batches: Columns, options: Options, *, as_json: bool) -> list[str]:
    """Return a line per record, empty for a record that has nothing to show."""
    contents = _contents(chunk, options, as_json=as_json)
    if not options.metadata:
        if as_json:
            return ["{" + content.removeprefix(", ") + "}" for content in contents]
        return ["|" + content if content else "" for content in contents]
    columns = chunk.columns
    owners = np.searchsorted(batches["position"], columns["batch_position"])
    by_log = ((batches["attributes"] & TIMESTAMP_TYPE_BIT) != 0)[owners]
    types: Sequence[str] = [TIMESTAMP_TYPES[flag] for flag in by_log.tolist()]
    rows = zip(
        columns["offset"].tolist(),
        types,
        columns["timestamp"].tolist(),
        columns["key_length"].tolist(),
        columns["value_length"].tolist(),
        columns["sequence"].tolist(),
        _header_keys(chunk, as_json=as_json),
        contents,
        strict=True,
    )
    template = _JSON + "%s}" if as_json else _TEMPLATE + "%s"
    return list(map(template.__mod__, rows))


def _header_keys(chunk: RecordChunk, *, as_json: bool) -> list[str]:
    counts = chunk.columns["header_count"]
    if not counts.any():
        return ["[]"] * len(counts)
    show = _dumps if as_json else _listed
    shown = [
        show([_printable(name) for name, _ in headers]) if headers else "[]"
        for headers in chunk.headers(_HEADERS)
    ]
    for row in np.flatnonzero(counts > _HEADERS).tolist():
        shown[row] = show([f"({counts[row]} headers)"])
    return shown


def _listed(names: list[str]) -> str:
    return "[" + ",".join(names) + "]"


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _contents(chunk: RecordChunk, options: Options, *, as_json: bool) -> list[str]:
    """Return the text after each record's metadata: key and value, or the control record."""
    control = chunk.columns["is_control"]
    if options.contents and not control.all():
        keys, values = _decoded(chunk, options.decoder) if options.decoder else _texts(chunk)
        field = _json_field if as_json else _text_field
        contents = list(map(str.__add__, field("key", keys), field("payload", values)))
    else:
        contents = [""] * len(control)
    for row in np.flatnonzero(control).tolist():
        contents[row] = _control(chunk, row, as_json=as_json) if options.metadata else ""
    return contents


def _texts(chunk: RecordChunk) -> tuple[Texts, Texts]:
    # Latin-1 has one character per byte, so a slice is the right text if it holds only ASCII.
    text = chunk.payload.decode("latin-1")
    columns = chunk.columns
    return (
        _slices(text, chunk.key_starts, columns["key_length"]),
        _slices(text, chunk.value_starts, columns["value_length"]),
    )


def _slices(text: str, starts: "np.ndarray[Any, Any]", lengths: "np.ndarray[Any, Any]") -> Texts:
    if not len(lengths):
        return []
    if lengths.max() < 0:
        return [None] * len(lengths)
    pairs = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    found: Texts = [text[at:end] for at, end in pairs]
    for row in np.flatnonzero(lengths < 0).tolist():
        found[row] = None
    return [one if one is None or one.isascii() else _utf8(one) for one in found]


def _utf8(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "backslashreplace")


def _decoded(chunk: RecordChunk, name: str) -> tuple[Texts, Texts]:
    from tools import decoders

    decode = decoders.DECODERS[name]
    keys: Texts = []
    values: Texts = []
    rows = zip(
        chunk.columns["is_control"].tolist(),
        chunk.columns["offset"].tolist(),
        chunk.keys(),
        chunk.values(),
        strict=True,
    )
    for control, offset, key, value in rows:
        shown = (None, None) if control else decode(offset, key, value)
        keys.append(shown[0])
        values.append(shown[1])
    return keys, values


def _text_field(name: str, texts: Texts) -> list[str]:
    # A null key or value has no field, as in Kafka's tool.
    return [f" {name}: {text}" if text is not None else "" for text in texts]


def _json_field(name: str, texts: Texts) -> list[str]:
    return [f', "{name}": {_dumps(text)}' for text in texts]


def _control(chunk: RecordChunk, row: int, *, as_json: bool) -> str:
    at, length = int(chunk.key_starts[row]), int(chunk.columns["key_length"][row])
    key = chunk.payload[at : at + length] if length >= 0 else None
    at, length = int(chunk.value_starts[row]), int(chunk.columns["value_length"][row])
    value = chunk.payload[at : at + length] if length >= 0 else None
    if not as_json:
        return control_records.text_of(key, value)
    fields = control_records.fields_of(key, value)
    return "".join(f', "{name}": {_dumps(content)}' for name, content in fields.items())
