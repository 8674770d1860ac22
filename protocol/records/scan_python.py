"""Record fields of a small batch, read by a plain loop. Same results as `scan_numpy`."""

from collections.abc import Sequence
from typing import Final

from protocol.records.effort import Effort
from protocol.records.errors import InvalidRecord
from protocol.records.varint import read_varint, read_varlong, wrap_int64

_INT64_MAX: Final = (1 << 63) - 1


class FewFields:
    """The columns as lists."""

    __slots__ = ("key_lengths", "offset_deltas", "timestamps")

    def __init__(
        self, timestamps: list[int], offset_deltas: list[int], key_lengths: list[int]
    ) -> None:
        self.timestamps = timestamps
        self.offset_deltas = offset_deltas
        self.key_lengths = key_lengths

    def time_range(self) -> tuple[int, int]:
        """As `Fields` says."""
        if not self.timestamps:
            return -1, -1
        return min(self.timestamps), max(self.timestamps)

    def keyless(self) -> tuple[int, ...]:
        """As `Fields` says."""
        return tuple(index for index, length in enumerate(self.key_lengths) if length < 0)

    def outside(self, least: int, greatest: int) -> tuple[int, ...]:
        """As `Fields` says."""
        return tuple(
            index
            for index, timestamp in enumerate(self.timestamps)
            if timestamp != -1 and not least <= timestamp <= greatest
        )

    def first_out_of_sequence(self, first: int = 0) -> int | None:
        """As `Fields` says."""
        if self.offset_deltas == list(range(first, first + len(self.offset_deltas))):
            return None
        return next(
            index for index, delta in enumerate(self.offset_deltas) if delta != first + index
        )

    def first_from(self, timestamp: int, offset_delta: int) -> tuple[int, int] | None:
        """As `Fields` says."""
        for delta, dated in zip(self.offset_deltas, self.timestamps, strict=True):
            if dated >= timestamp and delta >= offset_delta:
                return delta, dated
        return None


def read_fields(
    payload: bytes, starts: Sequence[int], base_timestamp: int, effort: Effort | None = None
) -> FewFields:
    """The columns of the records at `starts` (with the end as last entry).

    Raises InvalidRecord when a record's parts do not fill it exactly, EffortSpent.
    """
    deltas: list[int] = []
    offset_deltas: list[int] = []
    key_lengths: list[int] = []
    at = 0
    for index in range(len(starts) - 1):
        end = starts[index + 1]
        try:
            at += 2 if payload[at] < 0x80 else _before_delta(payload, at)
            # Most varints have one byte: spelled out, as a call costs more than the rest.
            delta = payload[at]
            at += 1
            if delta < 0x80:
                delta = (delta >> 1) ^ -(delta & 1)
            else:
                delta, at = read_varlong(payload, at - 1)
            offset_delta = payload[at]
            at += 1
            if offset_delta < 0x80:
                offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
            else:
                offset_delta, at = read_varint(payload, at - 1)
            key_length = payload[at]
            at += 1
            if key_length < 0x80:
                key_length = (key_length >> 1) ^ -(key_length & 1)
            else:
                key_length, at = read_varint(payload, at - 1)
            if key_length > 0:
                at += key_length
            value_length, at = read_varint(payload, at)
            if value_length > 0:
                at += value_length
            headers = payload[at]
            at += 1
            if headers:
                at = _skip_headers(payload, at - 1, end, effort)
        except IndexError:
            at = -1
        if at != end:
            raise InvalidRecord(f"Found invalid record structure in record {index}")
        deltas.append(delta)
        offset_deltas.append(offset_delta)
        key_lengths.append(key_length)
    timestamps = [base_timestamp + delta for delta in deltas]
    if timestamps and not -_INT64_MAX < min(timestamps) <= max(timestamps) < _INT64_MAX:
        timestamps = [wrap_int64(timestamp) for timestamp in timestamps]
    return FewFields(timestamps, offset_deltas, key_lengths)


def _before_delta(payload: bytes, at: int) -> int:
    """Bytes of the length (two or more) and the attributes of the record at `at`."""
    return 3 if payload[at + 1] < 0x80 else read_varint(payload, at)[1] - at + 1


def _skip_headers(payload: bytes, at: int, end: int, effort: Effort | None) -> int:
    """The position after the header count at `at` and its headers; -1 when they are malformed."""
    count, at = read_varint(payload, at)
    if count < 0 or count > end - at:
        return -1
    if effort is not None:
        effort.spend_steps(count)
    for _ in range(count):
        length, at = read_varint(payload, at)
        if length < 0:
            return -1
        length, at = read_varint(payload, at + length)
        if length > 0:
            at += length
        if at > end:
            return -1
    return at
