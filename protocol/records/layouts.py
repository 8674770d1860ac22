"""The quickest look at a plain batch: records of a layout that was seen before.

Producers send batches of one shape again and again: so many records of one size, with keys of one
size, no headers, and timestamps within 64 ms. What each structural byte of such a batch must be
follows from the number of records and the first six bytes:

    length  attributes  timestamp delta  offset delta  key length  key  value length  value  headers
    same    any         0 … 63           0, 1, 2 …     same        any  same          any    none

From the 65th record on, offset deltas take two bytes and lengths are larger by one, so a batch has
up to two runs of records. The bytes at one place of all records of a run are a slice with a stride:
what it has to equal is made once (`learn`) and compared for every batch (`is_known`), in a third of
the steps that finding the layout takes (`runs`). The expectation is made of the rules, not of the
batch: nothing is believed because it was seen before.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple

from protocol.records.runs import NOT_ABOVE, ONE_BYTE, TWO_BYTES, delta_columns
from protocol.records.varint import encode_varint

_MOST_RECORDS: Final = 1 << 16
"""Of all layouts that are kept: some megabytes, at most."""


class Layout(NamedTuple):
    """What a batch of so many records that begins so looks like."""

    size: int
    """Bytes of all records."""
    structure: Callable[[bytes], tuple[bytes, ...]]
    """Takes the bytes that are the same in all such batches, column by column."""
    expected: tuple[bytes, ...]
    """What they are."""
    first_times: slice
    """Where the timestamp deltas of the first 64 records stand."""
    later_times: slice | None
    """Those of all others, if there are."""


class Layouts:
    """Those that were learned; when they are too many, all are forgotten."""

    __slots__ = ("_known", "_records")

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], Layout] = {}
        self._records = 0

    def is_known(self, payload: bytes, count: int, greatest_delta: int) -> bool:
        """Whether `payload` is `count` sound records of a layout that was learned, the greatest of
        whose timestamp deltas is `greatest_delta`. False says nothing."""
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
        """Remember the layout of `count` sound records, if it is one of those."""
        head = payload[:6] if payload[0] > 0x7F else payload[:5]
        if (count, head) in self._known:
            return  # what follows is another one: with headers, or later timestamps
        layout = layout_of(head, count, len(payload))
        if layout is None:
            return
        self._records += count
        if self._records > _MOST_RECORDS:
            self._known.clear()
            self._records = count
        self._known[count, head] = layout


def layout_of(head: bytes, count: int, size: int) -> Layout | None:
    """What follows from the first bytes of the first record, up to its key's length.

    None: such records do not take `size` bytes, or their lengths are not written as usual.
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
    """How the length of a value is written that takes `size` bytes with its length.

    None: it takes more than two bytes, or there is no such value.
    """
    for width in (1, 2):
        if size >= width:
            written = encode_varint(size - width)
            if len(written) == width:
                return written
    return None


class _Run:
    """Records whose offset deltas take as many bytes."""

    def __init__(self, start: int, first: int, until: int, size: int) -> None:
        """`size`: of a record without its length."""
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
