"""The records of many batches found in step, held against the walk through one batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.builder import encode_record
from protocol.records.chain import record_starts
from protocol.records.chain_numpy import Walked, starts_in_step
from protocol.records.errors import InvalidRecord

Batch = tuple[bytes, int]
"""The records, and how many the header says they are."""


def records_of(sizes: list[int]) -> bytes:
    return b"".join(encode_record(i, 0, None, b"v" * size) for i, size in enumerate(sizes))


def walk(batches: list[Batch], *, between: bytes = b"", behind: bytes = b"") -> Walked:
    """Batches lie one after the other, with `between` before each and `behind` after the last."""
    data = b"".join(between + payload for payload, _ in batches) + behind
    sizes = np.array([len(payload) for payload, _ in batches], np.int64)
    ends = np.cumsum(sizes + len(between))
    counts = np.array([count for _, count in batches], np.int64)
    return starts_in_step(np.frombuffer(data, np.uint8), ends - sizes, ends, counts)


def one_by_one(batches: list[Batch], between: int = 0) -> tuple[list[int], list[int], list[bool]]:
    starts: list[int] = []
    ends: list[int] = []
    through: list[bool] = []
    at = 0
    for payload, count in batches:
        at += between
        try:
            bounds = [at + bound for bound in record_starts(payload, count)]
        except InvalidRecord:
            through.append(False)
        else:
            through.append(True)
            starts += bounds[:-1]
            ends += bounds[1:]
        at += len(payload)
    return starts, ends, through


good = st.lists(st.integers(0, 300), min_size=1, max_size=8).map(
    lambda sizes: (records_of(sizes), len(sizes))
)
bad = st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 9))
lying = st.tuples(good, st.integers(1, 9)).map(lambda drawn: (drawn[0][0], drawn[1]))
torn = st.tuples(good, st.integers(1, 5)).map(lambda drawn: (drawn[0][0][: -drawn[1]], drawn[0][1]))


@given(st.lists(good | bad | lying | torn, min_size=1, max_size=12), st.binary(max_size=61))
def test_a_batch_is_walked_through_as_if_it_were_alone(
    batches: list[Batch], between: bytes
) -> None:
    walked = walk(batches, between=between, behind=bytes(12))
    starts, ends, through = one_by_one(batches, len(between))
    assert walked.starts.tolist() == starts
    assert walked.ends.tolist() == ends
    assert walked.is_through.tolist() == through


def test_the_last_record_may_end_where_the_data_does() -> None:
    payload = records_of([3, 0, 7])
    walked = walk([(payload, 3)])
    assert walked.is_through.tolist() == [True]
    assert walked.ends.tolist() == record_starts(payload, 3)[1:]


@pytest.mark.parametrize("sizes", [[5, 9000, 5], [9000]])
def test_a_batch_with_a_long_record_is_left_to_others(sizes: list[int]) -> None:
    """Its length has three bytes. The batches beside it are walked through all the same."""
    beside = records_of([1, 2])
    walked = walk([(beside, 2), (records_of(sizes), len(sizes)), (beside, 2)])
    assert walked.is_through.tolist() == [True, False, True]
    assert len(walked.starts) == 4


def test_records_that_end_before_their_batch_do_not_reach_into_the_next() -> None:
    """A header that says one record too many: the next batch would begin with it."""
    two = records_of([4, 4])
    walked = walk([(two, 3), (records_of([4]), 1)])
    assert walked.is_through.tolist() == [False, True]
    assert walked.starts.tolist() == [len(two)]
