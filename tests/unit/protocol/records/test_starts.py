"""The records of many batches found together, held against the walk through one batch."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records import starts
from protocol.records.builder import encode_record
from protocol.records.chain import record_starts
from protocol.records.errors import InvalidRecord
from protocol.records.starts import PAD, BadBatch, starts_of_batches

Batch = tuple[bytes, int]
"""The records, and how many the header says they are."""
Rows = list[tuple[int, int, int]]
"""(start, end, batch) of each record."""


def records_of(sizes: list[int]) -> bytes:
    return b"".join(encode_record(i, 0, None, b"v" * size) for i, size in enumerate(sizes))


def together(batches: list[Batch], between: bytes = b"") -> Rows:
    """Batches lie one after the other, with `between` before each."""
    data = b"".join(between + payload for payload, _ in batches) + bytes(PAD)
    sizes = np.array([len(payload) for payload, _ in batches], np.int64)
    ends = np.cumsum(sizes + len(between))
    counts = np.array([count for _, count in batches], np.int64)
    found = starts_of_batches(data, ends - sizes, ends, counts)
    return list(zip(*(column.tolist() for column in found), strict=True))


def one_by_one(batches: list[Batch], between: bytes = b"") -> Rows | set[int]:
    """The same, or which batches are not filled by their records."""
    rows: Rows = []
    bad = set()
    at = 0
    for index, (payload, count) in enumerate(batches):
        at += len(between)
        try:
            bounds = [at + bound for bound in record_starts(payload, count)] if count else []
            if not count and payload:
                raise InvalidRecord("no records, but bytes")
        except InvalidRecord:
            bad.add(index)
        else:
            rows += [(start, end, index) for start, end in pairwise(bounds)]
        at += len(payload)
    return bad or rows


sizes = st.integers(0, 300) | st.sampled_from((8_000, 8_190, 8_200, 20_000))
good = st.lists(sizes, min_size=1, max_size=8).map(lambda drawn: (records_of(drawn), len(drawn)))
bad = st.tuples(st.binary(min_size=1, max_size=40), st.integers(-1, 9))
lying = st.tuples(good, st.integers(0, 9)).map(lambda drawn: (drawn[0][0], drawn[1]))
torn = st.tuples(good, st.integers(1, 5)).map(lambda drawn: (drawn[0][0][: -drawn[1]], drawn[0][1]))


@pytest.mark.parametrize("walked", [0, 1, 100])
@given(
    st.lists(good, min_size=1, max_size=12),
    st.lists(bad | lying | torn, max_size=1),
    st.integers(0, 12),
    st.binary(max_size=61),
)
def test_a_batch_is_gone_through_as_if_it_were_alone(
    walked: int, whole: list[Batch], wrong: list[Batch], place: int, between: bytes
) -> None:
    batches = [*whole[:place], *wrong, *whole[place:]]
    expected = one_by_one(batches, between)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starts, "_how_many_to_walk", lambda counts: min(walked, len(counts)))
        if isinstance(expected, list):
            assert together(batches, between) == expected
        else:
            with pytest.raises(BadBatch) as caught:
                together(batches, between)
            assert caught.value.index in expected


def test_no_batches_have_no_records() -> None:
    assert together([]) == []


def test_records_that_end_before_their_batch_do_not_reach_into_the_next() -> None:
    """A header that says one record too many: the next batch would begin with it."""
    two = records_of([4, 4])
    with pytest.raises(BadBatch) as caught:
        together([(two, 3), (records_of([4]), 1)])
    assert caught.value.index == 0


@pytest.mark.parametrize("length", [b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x0f", b"\x00"])
def test_a_length_that_makes_no_sense(length: bytes) -> None:
    good = records_of([300, 300])
    with pytest.raises(BadBatch) as caught:
        together([(good, 2), (length + bytes(40), 2), (good, 2)])
    assert caught.value.index == 1
