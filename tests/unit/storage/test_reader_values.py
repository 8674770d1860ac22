"""`storage.reader`: records by way of columns are the records that decoding one by one gives."""

from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.errors import RecordsError
from protocol.records.message_set import build_message_set
from protocol.records.record import Record
from storage.reader import PartitionView

ROWS = [
    (10, b"k", b"v", ()),
    (11, None, b"w" * 300, (("h", b"1"), ("h", None), ("ü", b""))),
    (12, b"", None, ()),
    (13, None, None, (("only", b"header"),)),
]


def partition(directory: Path, *pieces: bytes) -> PartitionView:
    (directory / f"{0:020}.log").write_bytes(b"".join(pieces))
    return PartitionView(directory)


def one_by_one(view: PartitionView) -> list[Record]:
    return [record for s in view.segments() for batch in s.batches() for record in batch.records()]


@pytest.mark.parametrize("codec", CompressionType)
def test_values_headers_and_nulls_of_every_codec(tmp_path: Path, codec: CompressionType) -> None:
    plain = build_batch(ROWS[:1], base_offset=0)
    packed = build_batch(ROWS, base_offset=1, codec=codec)
    view = partition(tmp_path, plain, packed, build_batch(ROWS[1:2], base_offset=5))
    assert list(view.records()) == one_by_one(view)
    assert [r.offset for r in view.records(3)] == [3, 4, 5]
    assert next(iter(view.records(2))).headers == [("h", b"1"), ("h", None), ("ü", b"")]


def test_messages_of_old_formats_in_between(tmp_path: Path) -> None:
    old = build_message_set([(0, 10, b"k", b"v"), (1, 11, None, b"w")], magic=1)
    view = partition(tmp_path, old, build_batch(ROWS, base_offset=2))
    assert list(view.records()) == one_by_one(view)
    assert len(one_by_one(view)) == 6


def test_what_is_good_before_a_bad_batch_comes_out(tmp_path: Path) -> None:
    bad = bytearray(build_batch(ROWS, base_offset=4))
    bad[61] = 0x03  # a negative length where the first record begins
    view = partition(tmp_path, build_batch(ROWS, base_offset=0), bytes(bad))
    records = view.records()
    assert [next(records).offset for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(RecordsError):
        next(records)
