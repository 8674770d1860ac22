"""Positions in a batch header, computed from the one layout, against the diagram in `batch`."""

import ast
import re

from protocol.records import batch, header
from protocol.records.builder import build_batch
from protocol.records.header import LAYOUT, fields_struct, position_of
from tests.support.installation import ROOT

# Read from the source, because a compiled module has no docstring.
DIAGRAM = ast.get_docstring(ast.parse((ROOT / "protocol/records/batch.py").read_text())) or ""
DRAWN = re.findall(r"^ +(\d+)  (\w[\w ]*\w) +([iu]\d+)\b", DIAGRAM, re.MULTILINE)
CODES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u32": "I"}
NAMES = {"leader epoch": "partition_leader_epoch"}


def test_the_layout_is_the_diagram() -> None:
    assert [
        (NAMES.get(name, name.replace(" ", "_")), int(at), CODES[kind]) for at, name, kind in DRAWN
    ] == [(name, position_of(name), code) for name, code in LAYOUT.items()]


def test_positions() -> None:
    assert (header.BATCH_OVERHEAD, header.LOG_OVERHEAD, header.HEADER_UP_TO_MAGIC) == (61, 12, 17)
    assert (header.MAGIC_OFFSET, header.CRC_OFFSET) == (16, 17)
    assert (header.ATTRIBUTES_OFFSET, header.KIND_OFFSET) == (21, 22)
    assert header.MAX_TIMESTAMP_OFFSET == 35
    assert (position_of("producer_id"), position_of("base_sequence")) == (43, 53)
    assert batch.HEADER.size == 61


def test_fields_are_read_from_where_they_are() -> None:
    data = build_batch(
        [(7, None, b"v", ()), (8, None, b"w", ())],
        producer_id=1 << 40,
        producer_epoch=3,
        base_sequence=9,
    )
    read = batch.read_header(data)
    assert fields_struct("producer_id", "producer_epoch").unpack_from(data) == (1 << 40, 3)
    assert fields_struct("base_sequence").unpack_from(data) == (9,)
    assert fields_struct(*LAYOUT).unpack_from(data) == tuple(getattr(read, f) for f in LAYOUT)
