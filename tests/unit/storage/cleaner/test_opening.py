"""Records of many batches opened together, held against the batches read one by one."""

import random

import numpy as np
import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.record import Record, iter_records
from storage.cleaner import opening
from storage.cleaner.errors import UncleanableLog, UncleanableReason
from storage.cleaner.opening import OpenedBatches, chunks_of, open_records
from storage.reader.columns import batch_columns
from storage.reader.frames import Frames

COUNTS = (1, 2, 31, 32, 33, 200)
"""On either side of what is walked through together, and of what a test takes for large."""
SIZES = (0, 20, 300, 9000)


def drawn_batches(rng: random.Random, count: int) -> list[bytes]:
    batches, offset = [], 0
    for _ in range(count):
        rows = [
            (1_000 + n, None if rng.random() < 0.2 else b"k%d" % n, b"v" * rng.choice(SIZES), ())
            for n in range(rng.choice(COUNTS))
        ]
        codec = rng.choice([CompressionType.NONE] * 3 + list(CompressionType))
        batches.append(build_batch(rows, base_offset=offset, codec=codec))
        offset += len(rows)
    return batches


def frames_of(batches: list[bytes]) -> Frames:
    starts = np.cumsum([0, *(len(batch) for batch in batches)])[:-1].tolist()
    return Frames(memoryview(b"".join(batches)), 0, starts, legacy=False)


def rows_of(frames: Frames, opened: OpenedBatches) -> list[tuple[int, Record | tuple[object, ...]]]:
    """(batch, (timestamp delta, key, value)) of each record."""
    rows = []
    parts = (
        chunks_of(frames.chunk, frames.starts[opened.first])
        if opened.is_large
        else [opened.records]
    )
    for records in parts:
        columns, payload = records.columns, records.payload
        for row, owner in enumerate(records.owners.tolist()):
            fields = []
            for starts, lengths in (
                (columns.key_starts, columns.key_lengths),
                (columns.value_starts, columns.value_lengths),
            ):
                start, length = int(starts[row]), int(lengths[row])
                fields.append(None if length < 0 else payload[start : start + length])
            rows.append((opened.first + owner, (int(columns.timestamp_deltas[row]), *fields)))
    return rows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("enough", "records", "large"), [(1 << 22, 100_000, 50_000), (3000, 40, 150)]
)
def test_all_records_of_the_wanted_batches_come_in_order(
    seed: int, enough: int, records: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_ENOUGH", enough)
    monkeypatch.setattr(opening, "_ENOUGH_RECORDS", records)
    monkeypatch.setattr(opening, "_LARGE_COUNT", large)
    rng = random.Random(seed)
    batches = drawn_batches(rng, 40)
    frames = frames_of(batches)
    wanted = np.array([rng.random() < 0.8 for _ in batches])
    found, reached = [], 0
    for opened in open_records(frames, batch_columns(frames), wanted):
        assert opened.first == reached < opened.after
        reached = opened.after
        found += rows_of(frames, opened)
    assert reached == len(batches)
    assert found == [
        (index, (record.timestamp - 1_000, record.key, record.value))
        for index, batch in enumerate(batches)
        if wanted[index]
        for record in iter_records(batch, 0)
    ]


def test_a_group_has_not_many_more_records_than_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ENOUGH_RECORDS", 50)
    batches = [build_batch([(0, b"k", b"v", ())] * 10, base_offset=10 * n) for n in range(100)]
    frames = frames_of(batches)
    groups = list(open_records(frames, batch_columns(frames), np.ones(100, np.bool_)))
    assert max(len(opened.records) for opened in groups) <= 60
    assert sum(len(opened.records) for opened in groups) == 1000


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("count", [10, 100])
def test_s_cmp_12_records_that_do_not_fill_their_batch_are_no_log(
    codec: CompressionType, count: int
) -> None:
    good = build_batch([(0, b"k", b"v", ())] * count, codec=codec)
    frames = frames_of([good, good])
    batches = batch_columns(frames)
    batches["record_count"] = batches["record_count"] + np.array([0, 1], np.int32)
    with pytest.raises(UncleanableLog) as caught:
        list(open_records(frames, batches, np.ones(2, np.bool_)))
    assert caught.value.reason is UncleanableReason.CORRUPT_RECORDS
