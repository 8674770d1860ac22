"""The fastest check of a plain batch: of one with a layout that was seen before.

Producers send batches of the same shape again and again: so many records of one size, with keys of
one size, no headers, and timestamps within 64 ms. The number of records and the first six bytes
determine each structural byte of such a batch:

    length  attributes  timestamp delta  offset delta  key length  key  value length  value  headers
    same    any         0 … 63           0, 1, 2 …     same        any  same          any    none

From the 65th record on, offset deltas take two bytes and lengths are larger by one, so a batch has
up to two runs of records. The bytes at one place of all records of a run are a slice with a stride.
Its expected value is computed once (`learn`) and compared for every batch (`is_known`), in a third
of the steps that finding the layout takes (`runs`). It is computed from the rules, not copied from
a batch: a layout is not trusted because it was seen before.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple

from protocol.records.runs import NOT_ABOVE, ONE_BYTE, TWO_BYTES, delta_columns
from protocol.records.varint import encode_varint

_MOST_RECORDS: Final = 1 << 16
"""The most records of all kept layouts together: some megabytes."""


class Layout(NamedTuple):
    """The structural bytes of all batches with one number of records and one beginning."""

    size: int
    """Bytes of all records."""
    structure: Callable[[bytes], tuple[bytes, ...]]
    """Gets a batch's structural bytes, column by column."""
    expected: tuple[bytes, ...]
    """What these columns must equal."""
    first_times: slice
    """The timestamp deltas of the first 64 records."""
    later_times: slice | None
    """The timestamp deltas of later records, if there are any."""


class Layouts:
    """The learned layouts; when they are too many, all are forgotten."""

    __slots__ = ("_known", "_records")

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], Layout] = {}
        self._records = 0

    def is_known(self, payload: bytes, count: int, greatest_delta: int) -> bool:
        """Whether `payload` is `count` valid records of a learned layout with `greatest_delta` as
        their greatest timestamp delta. False: not known, so check it otherwise."""
        layout = self._known.get((count, payload[:6] if payload[0] > 0x7F else payload[:5]))
        if layout is None or len(payload) != layout.size or not 0 <= greatest_delta < ONE_BYTE:
            return False
        if layout.structure(payload) != layout.expected:
            return False
        times = payload[layout.first_times]
        if layout.later_times is not None:
            times += payload[layout.later_times]
        return not times.translate(None, NOT_ABOVE[greatest_delta]) and 2 * greatest_delta in times

    def learn(self, payload: bytes, count: int) -> None:
        """Learn the layout of `count` valid records, if they have the shape above."""
        head = payload[:6] if payload[0] > 0x7F else payload[:5]
        if (count, head) in self._known:
            return  # known, but the records differ later on: headers, or later timestamps
        layout = layout_of(head, count, len(payload))
        if layout is None:
            return
        self._records += count
        if self._records > _MOST_RECORDS:
            self._known.clear()
            self._records = count
        self._known[count, head] = layout


def layout_of(head: bytes, count: int, size: int) -> Layout | None:
    """The layout that `head` determines: the first record's bytes up to its key's length.

    None if such records do not take `size` bytes, or if lengths are not in their shortest form.
    """
    length = head[0] & 0x7F
    if head[0] > 0x7F:
        if head[1] > 0x7F:
            return None
        length |= head[1] << 7
    key = head[-1]
    if length & 1 or key > 0x7F or (key & 1 and key != 1) or count > TWO_BYTES:
        return None
    runs = [_Run(0, 0, min(count, ONE_BYTE), length >> 1)]
    if count > ONE_BYTE:
        runs.append(_Run(runs[0].end, ONE_BYTE, count, (length >> 1) + 1))
    key_bytes = 0 if key & 1 else key >> 1
    # Besides: attributes, two deltas, the key's length and the number of headers.
    value_length = _length_within((length >> 1) - 5 - key_bytes)
    if runs[-1].end != size or value_length is None:
        return None
    columns: list[slice] = []
    expected: list[bytes] = []
    for run in runs:
        key_at = run.deltas_at + run.width
        value_at = key_at + 1 + key_bytes
        fixed = dict(enumerate(run.length)) | {key_at: key, run.step - 1: 0}
        fixed |= {value_at + at: byte for at, byte in enumerate(value_length)}
        columns += [run.column(place) for place in fixed]
        columns += [run.column(run.deltas_at + at) for at in range(run.width)]
        expected += [bytes((byte,)) * run.count for byte in fixed.values()]
        expected += delta_columns(run.first, run.until)
    times = [run.column(run.deltas_at - 1) for run in runs]
    later = times[1] if len(times) > 1 else None
    return Layout(size, itemgetter(*columns), tuple(expected), times[0], later)


def _length_within(size: int) -> bytes | None:
    """The encoded length of a value that takes `size` bytes together with that length.

    None if the length takes more than two bytes, or there is no such value.
    """
    for width in (1, 2):
        if size >= width:
            written = encode_varint(size - width)
            if len(written) == width:
                return written
    return None


class _Run:
    """Records [first, until) of a batch, whose offset deltas all take the same number of bytes."""

    def __init__(self, start: int, first: int, until: int, size: int) -> None:
        """`size`: bytes of a record without its length."""
        self.start = start
        self.first = first
        self.until = until
        self.count = until - first
        self.width = 1 if first < ONE_BYTE else 2
        self.length = encode_varint(size)
        self.step = len(self.length) + size
        self.end = start + self.count * self.step
        self.deltas_at = len(self.length) + 2

    def column(self, place: int) -> slice:
        """The byte at `place` of each record."""
        return slice(self.start + place, self.end, self.step)
