"""A few kilobytes of log that hold millions of records are read in pieces, and to the same rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import RecordsError
from storage.reader import PartitionView, SegmentView
from storage.reader import columns as reader_columns
from storage.reader.arrow import read_task
from storage.reader.scan import CorruptLog, ScanRequest, plan
from tools.__main__ import main

COUNTS = (1, 5, 1, 1, 40, 2, 3, 0, 41, 200, 1)
"""Records of the batches; 0 stands for one whose records cannot be read."""
Few = Callable[[int], None]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Few:
    """Set how many records are decoded together."""

    def at_most(records: int) -> None:
        monkeypatch.setattr(reader_columns, "MANY", records)
        monkeypatch.setattr(reader_columns, "_PIECE", 100)

    return at_most


def rows(count: int) -> list[tuple[int, bytes, bytes, tuple[tuple[str, bytes], ...]]]:
    return [(n, b"k%d" % n, b"v" * (n % 7), (("h", b"x"),) if n % 3 else ()) for n in range(count)]


def written(directory: Path, counts: tuple[int, ...] = COUNTS) -> SegmentView:
    codecs = (CompressionType.ZSTD, CompressionType.NONE, CompressionType.LZ4)
    pieces, offset = [], 0
    for at, count in enumerate(counts):
        batch = bytearray(build_batch(rows(count or 9), base_offset=offset, codec=codecs[at % 3]))
        if not count:
            batch[57:61] = (7).to_bytes(4, "big")  # fewer records than there are
        pieces.append(bytes(batch))
        offset += count or 9
    partition = directory / "t-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(b"".join(pieces))
    return PartitionView(partition).segments()[0]


def table(view: SegmentView) -> tuple[dict[str, list[Any]], list[Any], list[Any]]:
    chunks = list(view.iter_columns())
    whole = reader_columns.concatenate([c.columns for c in chunks], reader_columns.RECORD_COLUMNS)
    texts = [row for c in chunks for row in zip(c.keys(), c.values(), c.headers(), strict=True)]
    unreadable = [position for chunk in chunks for position, _ in chunk.unreadable]
    return {k: v.tolist() for k, v in whole.items()}, texts, unreadable


@pytest.mark.parametrize("together", [1, 2, 5, 39, 40, 41, 1000])
def test_the_rows_are_the_same_however_few_are_decoded_together(
    tmp_path: Path, few: Few, together: int
) -> None:
    view = written(tmp_path)
    expected = table(view)
    assert len(expected[2]) == 1
    few(together)
    assert table(view) == expected


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_a_million_records_in_one_batch_are_never_together(
    tmp_path: Path, codec: CompressionType
) -> None:
    count = 1_000_000
    batch = bytearray(build_batch([(0, None, None, ())], codec=codec))
    batch[57:61] = count.to_bytes(4, "big")
    batch[23:27] = (count - 1).to_bytes(4, "big")
    batch[61:] = compress(codec, bytes((12, 0, 0, 0, 1, 1, 0)) * count)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(batch)
    (segment,) = PartitionView(partition).segments()
    chunks = [len(chunk.columns["offset"]) for chunk in segment.iter_columns()]
    assert sum(chunks) == count
    assert max(chunks) <= reader_columns.MANY
    (task,) = plan(ScanRequest(directories=(str(tmp_path),))).tasks
    assert max(batch.num_rows for batch in read_task(task)) <= reader_columns.MANY


def test_a_chunk_is_cut_where_it_inflates_to_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = written(tmp_path)
    expected = table(view)
    monkeypatch.setattr(reader_columns, "INFLATED", 1)
    assert table(view) == expected
    assert len(list(view.iter_columns())) > 3


@pytest.mark.parametrize("counts", [(300,), (200, 400)])
def test_no_record_of_a_bad_batch_is_yielded(
    tmp_path: Path, few: Few, counts: tuple[int, ...]
) -> None:
    view = written(tmp_path, counts)
    path = Path(view.path)
    data = bytearray(path.read_bytes())
    last = view.batch_columns()["position"][-1]
    data[last + 57 : last + 61] = (counts[-1] + 1).to_bytes(4, "big")  # one is missing at its end
    path.write_bytes(data)
    few(10)
    seen, _, unreadable = table(view)
    assert unreadable == [last]
    assert seen["offset"] == list(range(sum(counts[:-1])))
    partition = PartitionView(path.parent)
    values = partition.records()
    assert [next(values).offset for _ in range(sum(counts[:-1]))] == seen["offset"]
    with pytest.raises(RecordsError):
        list(values)


@pytest.mark.parametrize("options", [[], ["--json"], ["--print-data-log"]])
def test_dump_log_prints_the_same_lines(
    tmp_path: Path, few: Few, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    words = ["dump-log", "--deep-iteration", *options, written(tmp_path).path]
    assert main(words) == 1
    expected = capsys.readouterr()
    few(7)
    assert main(words) == 1
    assert capsys.readouterr() == expected


def test_arrow_batches_have_the_same_rows(tmp_path: Path, few: Few) -> None:
    written(tmp_path, (3, 40, 5, 200, 1))
    (task,) = plan(ScanRequest(directories=(str(tmp_path),))).tasks
    expected = [row for batch in read_task(task) for row in batch.to_pylist()]
    few(10)
    assert [row for batch in read_task(task) for row in batch.to_pylist()] == expected


def test_arrow_names_a_bad_batch_of_many(tmp_path: Path, few: Few) -> None:
    view = written(tmp_path, (3, 40))
    position = int(view.batch_columns()["position"][-1])
    data = bytearray(Path(view.path).read_bytes())
    data[-1] ^= 1  # the end of what is compressed
    body = memoryview(data)[position + 21 :]
    data[position + 17 : position + 21] = crc32c(bytes(body)).to_bytes(4, "big")
    Path(view.path).write_bytes(bytes(data))
    few(10)
    (task,) = plan(ScanRequest(directories=(str(tmp_path),))).tasks
    with pytest.raises(CorruptLog, match="offset 3"):
        list(read_task(task))


def test_fsck_decodes_a_batch_of_many_records_in_bulk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = written(tmp_path, (99, 99, 1, 1, 100))  # the second and the last are plain
    decoded = []
    from storage.reader import batch as reader_batch

    real = reader_batch.iter_records

    def one_by_one(chunk: memoryview, at: int) -> Any:
        decoded.append(at)
        return real(chunk, at)

    monkeypatch.setattr(reader_batch, "iter_records", one_by_one)
    assert main(["fsck", "--records", str(Path(view.path).parent)]) == 1  # it has no indexes
    assert len(decoded) == 1


@pytest.mark.parametrize(("count", "shown"), [(10_000, "[" + "," * 9999), (10_001, "[(10001 h")])
def test_only_the_number_of_very_many_headers_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, shown: str
) -> None:
    row = (0, None, None, [("", None)] * count)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(build_batch([row, (0, b"k", None, ())], codec=CompressionType.ZSTD))
    assert main(["dump-log", "--deep-iteration", str(path)]) == 0
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert f"headerKeys: {shown}" in first
    assert second.endswith("headerKeys: []")
