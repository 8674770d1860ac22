"""Record fields of a small batch, read by a plain loop. Same answers as `scan_numpy`."""

from collections.abc import Sequence

from protocol.records.errors import InvalidRecord
from protocol.records.scan_fields import NO_RECORDS, TimestampScan
from protocol.records.varint import read_varint, read_varlong, wrap_int64


class FewFields:
    """The columns as lists."""

    __slots__ = ("key_lengths", "offset_deltas", "timestamps")

    def __init__(
        self, timestamps: list[int], offset_deltas: list[int], key_lengths: list[int]
    ) -> None:
        self.timestamps = timestamps
        self.offset_deltas = offset_deltas
        self.key_lengths = key_lengths

    def timestamp_summary(self, base_offset: int) -> TimestampScan:
        """As `Fields` says."""
        if not self.timestamps:
            return NO_RECORDS
        greatest = max(self.timestamps)
        return TimestampScan(
            min(self.timestamps), greatest, base_offset + self.timestamps.index(greatest)
        )

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

    def first_out_of_sequence(self) -> int | None:
        """As `Fields` says."""
        if self.offset_deltas == list(range(len(self.offset_deltas))):
            return None
        return next(index for index, delta in enumerate(self.offset_deltas) if delta != index)

    def first_from(self, timestamp: int, offset_delta: int) -> tuple[int, int] | None:
        """As `Fields` says."""
        for delta, dated in zip(self.offset_deltas, self.timestamps, strict=True):
            if dated >= timestamp and delta >= offset_delta:
                return delta, dated
        return None


def read_fields(payload: bytes, starts: Sequence[int], base_timestamp: int) -> FewFields:
    """The columns of the records at `starts` (with the end as last entry).

    Raises InvalidRecord when a record's parts do not fill it exactly.
    """
    timestamps: list[int] = []
    offset_deltas: list[int] = []
    key_lengths: list[int] = []
    for index in range(len(starts) - 1):
        end = starts[index + 1]
        at = starts[index] + 2
        if payload[at - 2] > 0x7F:
            at += 1 if payload[at - 1] < 0x80 else _more_length_bytes(payload, at)
        try:
            delta, at = read_varlong(payload, at)
            offset_delta, at = read_varint(payload, at)
            key_length, at = read_varint(payload, at)
            if key_length > 0:
                at += key_length
            value_length, at = read_varint(payload, at)
            if value_length > 0:
                at += value_length
            headers, at = read_varint(payload, at)
            if headers:
                at = _skip_headers(payload, at, end, headers)
        except IndexError:
            at = -1
        if at != end:
            raise InvalidRecord(f"Found invalid record structure in record {index}")
        timestamps.append(wrap_int64(base_timestamp + delta))
        offset_deltas.append(offset_delta)
        key_lengths.append(key_length)
    return FewFields(timestamps, offset_deltas, key_lengths)


def _more_length_bytes(payload: bytes, at: int) -> int:
    """Bytes of the length beyond the first; `at` is where a one-byte length would put the delta."""
    return read_varint(payload, at - 2)[1] - (at - 1)


def _skip_headers(payload: bytes, at: int, end: int, count: int) -> int:
    """The position after `count` headers; -1 when they are malformed."""
    if count < 0 or count > end - at:
        return -1
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
