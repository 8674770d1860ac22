"""Record fields of a larger batch, read column by column with numpy. Same results as `scan_python`.

Imported at first use only, because importing numpy would lengthen every start. Positions never
leave the padded array: after each field, a position beyond its record marks the record as bad and
is pulled back.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from protocol.records.effort import Effort
from protocol.records.errors import InvalidRecord
from protocol.records.varint import read_varint

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

# The longest varint read from the end of the payload stays inside.
PAD: Final = bytes(12)
# Rounds of one header of every record; records with more headers are left to a loop.
_HEADER_ROUNDS: Final = 16
# Headers of one record: `_WALK` are read one by one before a run of headers of one size is looked
# for again. A window of a run is compared at once, and doubled each time all in it are equal.
_WALK: Final = 64
_MIN_RUN: Final = 8
_FIRST_WINDOW: Final = 64
_LAST_WINDOW: Final = 1 << 17
_VARINT_SHIFT: Final = 28
_VARLONG_SHIFT: Final = 63
_ONE: Final = np.uint64(1)


class RecordColumns(NamedTuple):
    """The position or value of every field of every record, one int64 array per field."""

    timestamp_deltas: Ints
    offset_deltas: Ints
    key_lengths: Ints
    """-1 for a null key."""
    key_starts: Ints
    """The position at which the key's bytes begin in the payload."""
    value_lengths: Ints
    """-1 for a null value."""
    value_starts: Ints
    header_counts: Ints


class ManyFields:
    """The columns as arrays."""

    __slots__ = ("key_lengths", "offset_deltas", "timestamps")

    def __init__(self, timestamps: Ints, offset_deltas: Ints, key_lengths: Ints) -> None:
        self.timestamps = timestamps
        self.offset_deltas = offset_deltas
        self.key_lengths = key_lengths

    def time_range(self) -> tuple[int, int]:
        """As `Fields` says."""
        if not len(self.timestamps):
            return -1, -1
        return int(self.timestamps.min()), int(self.timestamps.max())

    def keyless(self) -> tuple[int, ...]:
        """As `Fields` says."""
        return tuple(np.flatnonzero(self.key_lengths < 0).tolist())

    def outside(self, least: int, greatest: int) -> tuple[int, ...]:
        """As `Fields` says."""
        timestamps = self.timestamps
        wrong = (timestamps != -1) & ((timestamps < least) | (timestamps > greatest))
        return tuple(np.flatnonzero(wrong).tolist())

    def first_out_of_sequence(self, first: int = 0) -> int | None:
        """As `Fields` says."""
        wrong = self.offset_deltas != np.arange(first, first + len(self.offset_deltas))
        return int(wrong.argmax()) if wrong.any() else None

    def first_from(self, timestamp: int, offset_delta: int) -> tuple[int, int] | None:
        """As `Fields` says."""
        found = (self.timestamps >= timestamp) & (self.offset_deltas >= offset_delta)
        if not found.any():
            return None
        index = int(found.argmax())
        return int(self.offset_deltas[index]), int(self.timestamps[index])


def read_fields(
    payload: bytes, starts: Sequence[int] | Ints, base_timestamp: int, effort: Effort | None = None
) -> ManyFields:
    """The columns of the records at `starts` (with the end as last entry).

    Raises InvalidRecord when a record's parts do not fill it exactly, EffortSpent.
    """
    bounds = np.asarray(starts, np.int64)
    columns = read_columns(payload, bounds[:-1], bounds[1:], effort)
    # int64 addition wraps as Java's does.
    return ManyFields(
        np.int64(base_timestamp) + columns.timestamp_deltas,
        columns.offset_deltas,
        columns.key_lengths,
    )


def read_columns(
    payload: bytes,
    starts: Ints,
    ends: Ints,
    effort: Effort | None = None,
    *,
    is_padded: bool = False,
) -> RecordColumns:
    """Every field of the records at [start, end) in `payload`.

    Records lie anywhere in it: those of many batches can be read at once,
    so that small batches cost no more than large ones. Raises InvalidRecord, EffortSpent.
    `is_padded`: `PAD` is behind the last record already, so a large payload need not be copied.
    """
    data = np.frombuffer(payload if is_padded else payload + PAD, np.uint8)
    reader = _Reader(data, starts, ends)
    lengths = reader.varint(_VARINT_SHIFT)
    reader.bad |= lengths != ends - reader.at
    reader.skip(np.int64(1))
    deltas = reader.varint(_VARLONG_SHIFT)
    offset_deltas = reader.varint(_VARINT_SHIFT)
    key_lengths = reader.varint(_VARINT_SHIFT)
    key_starts = reader.at
    reader.skip(np.maximum(key_lengths, 0))
    value_lengths = reader.varint(_VARINT_SHIFT)
    value_starts = reader.at
    reader.skip(np.maximum(value_lengths, 0))
    header_counts = reader.varint(_VARINT_SHIFT)
    if header_counts.any():
        reader.skip_headers(payload, header_counts, effort or Effort())
    reader.finish()
    np.maximum(key_lengths, -1, out=key_lengths)
    np.maximum(value_lengths, -1, out=value_lengths)
    return RecordColumns(
        deltas, offset_deltas, key_lengths, key_starts, value_lengths, value_starts, header_counts
    )


def read_times(payload: bytes, starts: Ints, base_timestamp: int) -> ManyFields:
    """As `read_fields`, but for times and offsets only.

    The rest of each record is not read, and all count as without key. Raises InvalidRecord for a
    record that ends too early.
    """
    data = np.frombuffer(payload + PAD, np.uint8)
    reader = _Reader(data, starts[:-1], starts[1:])
    reader.varint(_VARINT_SHIFT)
    reader.skip(np.int64(1))
    deltas = reader.varint(_VARLONG_SHIFT)
    offset_deltas = reader.varint(_VARINT_SHIFT)
    if reader.bad.any():
        index = int(reader.bad.argmax())
        raise InvalidRecord(f"Found invalid record structure in record {index}")
    return ManyFields(
        np.int64(base_timestamp) + deltas, offset_deltas, np.full(len(deltas), -1, np.int64)
    )


class _Reader:
    """A cursor in every record at once."""

    __slots__ = ("at", "bad", "data", "ends")

    def __init__(self, data: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> None:
        self.data = data
        self.at = starts
        self.ends = ends
        self.bad: Flags = np.zeros(len(starts), np.bool_)

    def varint(self, shift_limit: int) -> Ints:
        """The zigzag varint under each cursor, which moves behind it."""
        values, at, too_long = _varints(self.data, self.at, shift_limit)
        if too_long is not None:
            self.bad[too_long] = True
        self._move(at)
        return values

    def skip(self, distance: "Ints | np.int64") -> None:
        """Moves each cursor."""
        self._move(self.at + distance)

    def _move(self, at: Ints) -> None:
        beyond = at > self.ends
        if beyond.any():
            self.bad |= beyond
            at = np.minimum(at, self.ends)
        self.at = at

    def skip_headers(self, payload: bytes, counts: Ints, effort: Effort) -> None:
        """Moves each cursor behind its record's headers."""
        self.bad |= (counts < 0) | (counts > self.ends - self.at)
        left = np.where(self.bad, 0, counts)
        for _ in range(_HEADER_ROUNDS):
            active = np.flatnonzero(left > 0)
            if not active.size:
                return
            part = _Reader(self.data, self.at[active], self.ends[active])
            name_lengths = part.varint(_VARINT_SHIFT)
            part.bad |= name_lengths < 0
            part.skip(np.maximum(name_lengths, 0))
            part.skip(np.maximum(part.varint(_VARINT_SHIFT), 0))
            self.at[active] = part.at
            self.bad[active[part.bad]] = True
            left[active] -= 1
            left[self.bad] = 0
        for index in np.flatnonzero(left > 0).tolist():
            end = int(self.ends[index])
            at = skip_headers(payload, int(self.at[index]), end, int(left[index]), effort)
            self.bad[index] = at < 0
            self.at[index] = at

    def finish(self) -> None:
        """Raises InvalidRecord unless every cursor stands at its end and none went wrong."""
        wrong = self.bad | (self.at != self.ends)
        if wrong.any():
            index = int(wrong.argmax())
            raise InvalidRecord(f"Found invalid record structure in record {index}")


def greatest_of_columns(columns: Sequence[bytes]) -> int:
    """The greatest of varlongs of one width (nine bytes at most), given byte by byte."""
    raw = np.zeros(len(columns[0]), np.int64)
    for place, column in enumerate(columns):
        raw |= (np.frombuffer(column, np.uint8) & 0x7F).astype(np.int64) << 7 * place
    return int(((raw >> 1) ^ -(raw & 1)).max())


def _varints(
    data: npt.NDArray[np.uint8], at: Ints, shift_limit: int
) -> tuple[Ints, Ints, Ints | None]:
    """(values, positions behind them, indexes of those with too many bytes)."""
    byte = data[at]
    more = np.flatnonzero(byte > 0x7F)
    if not more.size:
        short = byte.astype(np.int64)
        return (short >> 1) ^ -(short & 1), at + 1, None
    raw = (byte & 0x7F).astype(np.uint64)
    behind = at + 1
    shift = 7
    too_long: Ints | None = None
    while more.size:
        if shift > shift_limit:
            too_long = more
            break
        byte = data[behind[more]]
        raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        behind[more] += 1
        more = more[byte > 0x7F]
        shift += 7
    if shift_limit == _VARINT_SHIFT:
        raw &= np.uint64(0xFFFFFFFF)
    values = (raw >> _ONE).view(np.int64) ^ -((raw & _ONE).view(np.int64))
    return values, behind, too_long


def skip_headers(payload: bytes, at: int, end: int, count: int, effort: Effort) -> int:
    """The position after `count` headers of one record; -1 when they are malformed.

    Headers of one size are taken together, as records are in `walk`. Raises EffortSpent.
    """
    window = _FIRST_WINDOW
    try:
        while count > 0:
            ran, step = _header_run(payload, at, end, min(window, count))
            if ran >= _MIN_RUN:
                count -= ran
                at += ran * step
                window = min(2 * window, _LAST_WINDOW) if ran == window else _FIRST_WINDOW
                continue
            window = _FIRST_WINDOW
            effort.spend_steps(_WALK)
            for _ in range(min(_WALK, count)):
                length, at = read_varint(payload, at)
                if length < 0:
                    return -1
                length, at = read_varint(payload, at + length)
                at += max(length, 0)
                if at > end:
                    return -1
            count -= _WALK
    except (IndexError, InvalidRecord):
        return -1
    return at


def _header_run(payload: bytes, at: int, end: int, most: int) -> tuple[int, int]:
    """(headers of one size from `at` on, their size); (0, 0) where no short lengths stand."""
    name = payload[at]
    value_at = 1 + (name >> 1)
    if name & 0x81 or at + value_at >= end:
        return 0, 0
    value = payload[at + value_at]
    if value > 0x7F:
        return 0, 0
    step = value_at + 1 + (0 if value & 1 else value >> 1)
    stop = min(at + step * most, end)
    names = payload[at:stop:step]
    values = payload[at + value_at : stop : step]
    ran = min(
        len(names) - len(names.lstrip(bytes((name,)))),
        len(values) - len(values.lstrip(bytes((value,)))),
    )
    return (ran, step) if at + ran * step <= end else (ran - 1, step)
