"""Rebuilds batches of format 2 with fewer records, as Kafka's `MemoryRecordsBuilder` does.

Unchanged are base offset, last offset, producer, sequence, leader epoch, codec and the kind of
batch (S-CMP-7). So offsets never change, and the producer's next sequence is still known. The base
timestamp is that of the first record kept, or the delete horizon (attribute bit 6, S-CMP-6), and
the timestamp deltas are relative to it; the max timestamp is that of the records kept.

A record keeps its bytes except its timestamp delta, which follows the length and the attributes. A
new delta of the same width is written in place of the old one; otherwise the record gets a new head
before its unchanged rest. Both are done for many records at once.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from protocol.records.builder import assemble_batch

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MOST: Final = 2**31 - 1 - BATCH_OVERHEAD
"""The most bytes of records in one batch."""

_KIND: Final = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
_HEAD: Final = 16
"""The longest head: five bytes of length, one of attributes, ten of timestamp delta."""
_SEVEN: Final = np.uint64(7)


class OriginalHeader(NamedTuple):
    """The header fields of a batch from which the rebuilt one's are taken."""

    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


def empty_batch(place: OriginalHeader) -> bytes:
    """A batch of the header alone (`DefaultRecordBatch.writeEmptyHeader`): no codec, no horizon."""
    return _assembled(
        b"",
        place,
        record_count=0,
        attributes=place.attributes & _KIND,
        base_timestamp=-1,
        max_timestamp=place.max_timestamp,
    )


def filled_batch(
    payload: bytes,
    place: OriginalHeader,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    horizon: int,
) -> bytes:
    """A batch of `count` records, whose `payload` is compressed already; `horizon` -1 for none."""
    return _assembled(
        payload,
        place,
        record_count=count,
        attributes=place.attributes & (_KIND | CODEC_MASK)
        | (DELETE_HORIZON_BIT if horizon >= 0 else 0),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
    )


def _assembled(
    payload: bytes,
    place: OriginalHeader,
    *,
    record_count: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
) -> bytes:
    return assemble_batch(
        payload,
        base_offset=place.base_offset,
        last_offset_delta=place.last_offset - place.base_offset,
        record_count=record_count,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        attributes=attributes,
        producer_id=place.producer_id,
        producer_epoch=place.producer_epoch,
        base_sequence=place.base_sequence,
        leader_epoch=place.partition_leader_epoch,
    )


def redated_records(
    payload: bytes | bytearray,
    starts: Ints,
    ends: Ints,
    old: Ints,
    new: Ints,
    bounds: Sequence[int],
) -> list[bytes]:
    """The records of some batches with new timestamp deltas; one piece per batch.

    The records at [starts, ends) in `payload` have the deltas `old` and get `new`; those of the
    batch i are the ones from bounds[i] to bounds[i + 1].
    """
    changed = old != new
    if not changed.any():
        return _joined_runs(payload, starts, ends, bounds)
    data = np.frombuffer(payload, np.uint8)
    at = starts + _varint_sizes(data, starts) + 1
    sizes = _varint_sizes(data, at)
    codes = _zigzag(new)
    new_sizes = _sizes_of(codes)
    grows = changed & (new_sizes != sizes)
    rows = np.flatnonzero(changed & ~grows)
    if rows.size:
        payload = bytearray(payload)
        _put_varints(np.frombuffer(payload, np.uint8), at[rows], codes[rows], new_sizes[rows])
    if not grows.any():
        return _joined_runs(payload, starts, ends, bounds)
    grown = np.add.reduceat(grows, np.array(bounds[:-1])) > 0
    pieces: list[bytes] = []
    for index, is_grown in enumerate(grown.tolist()):
        first, after = bounds[index], bounds[index + 1]
        part = slice(first, after)
        if is_grown:
            behind = at[part] + sizes[part]
            pieces.append(_joined_heads(payload, behind, ends[part], codes[part], new_sizes[part]))
        else:
            pieces += _joined_runs(payload, starts[part], ends[part], (0, after - first))
    return pieces


def _joined_runs(
    payload: bytes | bytearray, starts: Ints, ends: Ints, bounds: Sequence[int]
) -> list[bytes]:
    """Unchanged records, one piece per batch; adjacent ones are copied together."""
    is_first = np.empty(len(starts), np.bool_)
    is_first[0] = True
    np.not_equal(starts[1:], ends[:-1], out=is_first[1:])
    is_first[np.array(bounds[:-1])] = True
    firsts = np.flatnonzero(is_first)
    lasts = np.concatenate((firsts[1:], [len(starts)])) - 1
    runs = list(map(slice, starts[firsts].tolist(), ends[lasts].tolist()))
    cuts = [*np.searchsorted(firsts, bounds[:-1]).tolist(), len(runs)]
    view = memoryview(payload)
    return [
        b"".join([view[run] for run in runs[cut:following]]) for cut, following in pairwise(cuts)
    ]


def _joined_heads(
    payload: bytes | bytearray, behind: Ints, ends: Ints, codes: Ints, sizes: Ints
) -> bytes:
    """Records with new heads; `behind` is where the unchanged part of each begins."""
    bodies = 1 + sizes + (ends - behind)
    body_codes = _zigzag(bodies)
    body_sizes = _sizes_of(body_codes)
    heads = np.zeros(len(ends) * _HEAD, np.uint8)
    at = np.arange(len(ends)) * _HEAD
    _put_varints(heads, at, body_codes, body_sizes)
    _put_varints(heads, at + body_sizes + 1, codes, sizes)
    raw, view = memoryview(heads.tobytes()), memoryview(payload)
    pieces: list[memoryview] = []
    head_ends = at + body_sizes + 1 + sizes
    bounds = zip(at.tolist(), head_ends.tolist(), behind.tolist(), ends.tolist(), strict=True)
    for head, head_end, rest, end in bounds:
        pieces += (raw[head:head_end], view[rest:end])
    return b"".join(pieces)


def _varint_sizes(data: Bytes, at: Ints) -> Ints:
    """Bytes of the varint at each position."""
    sizes = np.ones(len(at), np.int64)
    more = np.flatnonzero(data[at] > 0x7F)
    while more.size:
        sizes[more] += 1
        more = more[data[at[more] + sizes[more] - 1] > 0x7F]
    return sizes


def _zigzag(values: Ints) -> Ints:
    """The zigzag codes: unsigned numbers, in an int64 array's bits."""
    codes: Ints = (values << 1) ^ (values >> 63)
    return codes


def _sizes_of(codes: Ints) -> Ints:
    """Bytes of each as a varint."""
    left = codes.view(np.uint64) >> _SEVEN
    sizes = np.ones(len(codes), np.int64)
    while left.any():
        sizes += left != 0
        left = left >> _SEVEN
    return sizes


def _put_varints(data: Bytes, at: Ints, codes: Ints, sizes: Ints) -> None:
    """Writes each at its position."""
    left = codes.view(np.uint64)
    place = 0
    while at.size:
        more = sizes > place + 1
        data[at + place] = (left & np.uint64(0x7F)).astype(np.uint8) | (
            more.astype(np.uint8) << np.uint8(7)
        )
        at, left, sizes = at[more], left[more] >> _SEVEN, sizes[more]
        place += 1
