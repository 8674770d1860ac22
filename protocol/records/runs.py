"""The fast check of a plain batch: records of one layout are checked together, field by field.

Most producers write records of one size many times in a row. Then the byte at a given place of each
record is a slice with a stride, which C takes and compares for all of them at once:

    length  attributes  timestamp delta  offset delta  key length  key  value length  value  headers
    same    any         any, same width  0, 1, 2 …     same        any  same          any    same

The first record of a run is read field by field and gives the layout. Later records belong to the
run as long as their length bytes are the same, by induction: one record's length determines where
the next one's lies. Then every other structural byte is compared in the same way, and offset deltas
with tables of their right values. If anything does not fit, the fast check ends, and the batch is
read record by record (`scan`), which tells what is wrong, if anything is.

Records of odd sizes have no common stride, and are read one by one (`greatest_delta_of`).
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import Final

from protocol.records.chain import FAR, distances
from protocol.records.errors import InvalidRecord
from protocol.records.varint import read_varint, read_varlong

_LONG: Final = 8
"""The fewest records that runs must have on average, except the first, or the check gives up."""
_MOST_RUNS: Final = 256
"""More would hold the event loop for over a millisecond."""
_head_of: Final = Struct("2Bx5B").unpack_from
"""Unpacks a record with two bytes of length and one of each delta: these, the byte of the key's
length and, if the key is null, two of the value's length. The attributes are left out."""
_later_head_of: Final = Struct("<2BxBH3B").unpack_from
"""`_head_of` for two bytes of offset delta."""
_head_of_one: Final = Struct("<HxBBBH").unpack_from
"""Unpacks a record without key, both of whose lengths take two bytes: length, both deltas, the byte
of the key's length, the value's length."""
LEAST_RECORD: Final = 7
"""Bytes of an empty record: length, attributes, two deltas, two null lengths, header count."""
_LEAST_OF_TWO_BYTES: Final = 64 + 9
_MOST_OF_TWO_BYTES: Final = 8191 + 2
"""Bytes of the smallest and the largest record that `_head_of_one` is for: of its content of up to
8,191 bytes, whose length has two bytes, seven are not the value, which has 64 at least."""
_MOST_HEADERS: Final = 8
_MOST_COLUMNS: Final = 8
"""The most bytes of a timestamp delta before its last one: with more, a sum could leave 64 bits."""

# The zigzag forms of offset deltas, by how many bytes they take.
ONE_BYTE: Final = 64
TWO_BYTES: Final = 8192
_THREE_BYTES: Final = 1 << 20
_DELTA: Final = bytes(2 * d for d in range(ONE_BYTE))
_LOW: Final = bytes(2 * d & 0x7F | 0x80 for d in range(TWO_BYTES))
_HIGH: Final = bytes(2 * d >> 7 for d in range(TWO_BYTES))
_MIDDLE: Final = bytes(2 * d >> 7 | 0x80 for d in range(TWO_BYTES))
_CONTINUED: Final = bytes(range(0x80, 0x100))
_NOT_ABOVE: Final = tuple(
    bytes(byte for byte in range(0x80) if byte & 1 or byte >> 1 <= greatest)
    for greatest in range(ONE_BYTE)
)
"""Per greatest timestamp delta the one-byte deltas that are not above it."""
_LOW_NOT_ABOVE: Final = tuple(bytes(byte | 0x80 for byte in row) for row in _NOT_ABOVE)
"""The same for the first of two bytes, where the second ones are equal."""
_LESS_OR_LIKE: Final = tuple(bytes(range(byte + 1)) for byte in range(0x80))


def is_regular(payload: bytes, count: int, greatest_delta: int, *, need_keys: bool = False) -> bool:
    """Whether `payload` is `count` valid records with offset deltas 0 … count-1 and with
    `greatest_delta` as their greatest timestamp delta (and with `need_keys` none without key).

    False: the fast check does not prove it.
    """
    try:
        return _is_regular(payload, count, greatest_delta, need_keys)
    except (IndexError, InvalidRecord):
        return False


def _is_regular(  # noqa: C901, PLR0912  calls cost more than the rest
    payload: bytes, count: int, greatest_delta: int, need_keys: bool
) -> bool:
    table = distances()
    end = len(payload)
    at = delta = runs = 0
    seen = False  # the greatest timestamp
    while delta < count:
        if runs > 1 and (delta < (runs - 1) * _LONG or runs == _MOST_RUNS):
            return False
        runs += 1
        if delta < ONE_BYTE:
            width, limit = 1, ONE_BYTE
        elif delta < TWO_BYTES:
            width, limit = 2, TWO_BYTES
        else:
            width, limit = 3, (delta // TWO_BYTES + 1) * TWO_BYTES
        head = payload[at]
        step = table[head][payload[at + 1]]  # FAR for eight kilobytes and more
        ran = min(limit - delta, count - delta, (end - at) // step)
        if ran < 1 or delta >= _THREE_BYTES:
            return False
        stop = at + ran * step
        column = payload[at:stop:step]
        if column != column[:1] * ran:
            ran -= len(column.lstrip(column[:1]))
            stop = at + ran * step
        time_at = at + 2
        if head > 0x7F:
            column = payload[at + 1 : stop : step]
            if column != column[:1] * ran:
                ran -= len(column.lstrip(column[:1]))
                stop = at + ran * step
            time_at += 1
        delta_at = time_at + 1
        while payload[delta_at - 1] > 0x7F:
            delta_at += 1
        if width == 1:
            if payload[delta_at:stop:step] != _DELTA[delta : delta + ran]:
                return False
        elif not _deltas_rise(payload, delta_at, stop, step, delta, ran, width):
            return False
        # Every structural byte behind the deltas must be that of the first record.
        for place in _fixed_bytes(payload, delta_at + width, at + step, need_keys):
            column = payload[place:stop:step]
            if column != column[:1] * ran:
                return False
        greatest = _greatest_of_column(payload, time_at, delta_at, stop, step, greatest_delta)
        if greatest > greatest_delta:
            return False
        seen = seen or greatest == greatest_delta
        at = stop
        delta += ran
    return at == end and seen


def is_odd(payload: bytes) -> bool:
    """Whether the second and the third record differ in size: then `is_regular` mostly fails."""
    try:
        table = distances()
        second = table[payload[0]][payload[1]]
        size = table[payload[second]][payload[second + 1]]
        third = second + size
        return size != table[payload[third]][payload[third + 1]]
    except IndexError:
        return False


def delta_of_one(payload: bytes | memoryview) -> int | None:  # noqa: C901  calls cost more than the rest
    """The timestamp delta of the one valid record that fills `payload`; None if that is not proved:
    it is invalid, or has headers, a delta of several bytes, or about a megabyte or more.

    Most have no key and a value of 64 bytes to 8 KB; all but the delta then follows from the size.
    """
    size = len(payload)
    if size < LEAST_RECORD:
        return None
    if _LEAST_OF_TWO_BYTES <= size <= _MOST_OF_TWO_BYTES:
        delta: int
        length, delta, offset_delta, key, value = _head_of_one(payload)
        twice = 2 * size - 4
        if (
            length == twice & 0x7F | 0x80 | (twice & 0x3F80) << 1
            and value == twice - 14 & 0x7F | 0x80 | (twice - 14 & 0x3F80) << 1
            and key == 1
            and offset_delta == 0
            and delta < 0x80
            and payload[-1] == 0
        ):
            return (delta >> 1) ^ -(delta & 1)
    length, at = payload[0], 1
    if length > 0x7F:
        more, at = payload[1], 2
        length += (more << 7) - 0x80
        if more > 0x7F:
            more, at = payload[2], 3
            length += (more << 14) - 0x4000
            if more > 0x7F:
                return None
    try:
        delta = payload[at + 1]
        if length != 2 * (size - at) or delta > 0x7F or payload[at + 2]:
            return None
        at += 3
        key = payload[at]
        if key > 0x7F:
            return None
        at += 1 if key & 1 else 1 + (key >> 1)
        value = payload[at]
        at += 1
        if value > 0x7F:
            more = payload[at]
            at += 1
            value += (more << 7) - 0x80
            if more > 0x7F:
                more = payload[at]
                at += 1
                value += (more << 14) - 0x4000  # a fourth byte: more than the record has
        if not value & 1:
            at += value >> 1
        if payload[at] or at + 1 != size:
            return None
    except IndexError:
        return None
    return (delta >> 1) ^ -(delta & 1)


def greatest_delta_of(payload: bytes, count: int) -> int | None:  # noqa: C901, PLR0912  calls cost more than the rest
    """The greatest timestamp delta of `count` valid records with offset deltas 0 … count-1 that
    fill `payload`; None if that is not proved.

    For records of odd sizes, one by one. Most of them (less than 8 KB, a short key or none, no
    headers) take the fast way: one call reads all structural bytes up to the value, and tables map
    lengths of one or two bytes to distances.
    """
    if count > TWO_BYTES:
        return None
    records, fields = distances(), _field_sizes()
    at = 0
    time = -1  # as it was written last
    greatest = -1 << 63
    try:
        for head_of, key_end, expected in (
            (_head_of, 6, range(0, 2 * min(count, ONE_BYTE), 2)),
            (_later_head_of, 7, _two_bytes_up_to(count)),
        ):
            for right in expected:
                length, more, delta, offset_delta, key, value, low = head_of(payload, at)
                end = at + key_end
                stop = at + records[length][more]
                if length < 0x80:
                    # One byte of length: the head is the same, read from the byte before.
                    if at:
                        _, _, delta, offset_delta, key, value, low = head_of(payload, at - 1)
                        end -= 1
                    else:
                        delta, offset_delta = 0, -1  # take the slow way below
                if delta > 0x7F:
                    # Two bytes of timestamp delta: the rest of the head is one byte further on.
                    first = delta & 0x7F
                    _, _, delta, offset_delta, key, value, low = head_of(payload, end - key_end + 1)
                    end += 1
                    if delta > 0x7F:
                        offset_delta = -1
                    delta = delta << 7 | first
                if offset_delta == right and key < 0x80:
                    if key == 1:
                        end += fields[value][low]
                    else:
                        if not key & 1:
                            end += key >> 1
                        end += fields[payload[end]][payload[end + 1]]
                    if end + 1 == stop:
                        filled = not payload[end]
                    else:
                        filled = end < stop < FAR and _behind_headers(payload, end) == stop
                    if filled:
                        at = stop
                        if delta != time:
                            time = delta
                            delta = (delta >> 1) ^ -(delta & 1)
                            if delta > greatest:
                                greatest = delta
                        continue
                delta, at = _read_record(payload, at, right)
                if delta > greatest:
                    greatest = delta
    except (IndexError, InvalidRecord, StructError):
        return None
    return greatest if at == len(payload) else None


def _field_sizes() -> list[tuple[int, ...]]:
    """`[first byte][second byte]` of a key's or value's length: bytes of both length and content;
    FAR if two bytes do not tell."""
    if not _fields:
        short = [tuple([1 if byte & 1 else 1 + (byte >> 1)] * 256) for byte in range(0x80)]
        _fields[:] = [*short, *distances()[0x80:]]  # all at once, as in `distances`
    return _fields


_fields: list[tuple[int, ...]] = []


def _two_bytes_up_to(count: int) -> Sequence[int]:
    """The offset deltas of two bytes below `count`, as little-endian numbers."""
    if count <= ONE_BYTE:
        return ()
    if not _two_bytes:
        pairs = zip(_LOW[ONE_BYTE:], _HIGH[ONE_BYTE:], strict=True)
        _two_bytes[:] = [high << 8 | low for low, high in pairs]
    return _two_bytes[: count - ONE_BYTE]


_two_bytes: list[int] = []


def _read_record(payload: bytes, at: int, expected: int) -> tuple[int, int]:
    """(timestamp delta, position behind the record at `at`). Raises InvalidRecord or IndexError
    unless it is proved valid, with the offset delta whose bytes are `expected`."""
    length, at = read_varint(payload, at)
    stop = at + length
    delta = payload[at + 1]
    at += 2
    if delta < 0x80:
        delta = (delta >> 1) ^ -(delta & 1)
    else:
        delta, at = read_varlong(payload, at - 1)
    right = payload[at] == expected & 0xFF
    at += 1
    if expected > 0x7F:
        right = right and payload[at] == expected >> 8
        at += 1
    at = _behind_field(payload, _behind_field(payload, at))
    if _behind_headers(payload, at) != stop or not right:
        raise _NOT_AT_A_GLANCE
    return delta, stop


def _behind_field(payload: bytes, at: int) -> int:
    """The position behind the key or value at `at`."""
    size = payload[at]
    if size < 0x80:
        return at + 1 if size & 1 else at + 1 + (size >> 1)
    size, at = read_varint(payload, at)
    return at + size if size > 0 else at


def _behind_headers(payload: bytes, at: int) -> int:
    """The position behind the headers, a few at most, whose number is at `at`."""
    headers = payload[at]
    if headers & 1 or headers > 2 * _MOST_HEADERS:
        raise _NOT_AT_A_GLANCE
    at += 1
    for _ in range(headers >> 1):
        size = payload[at]
        if size & 1:  # a name is never null
            raise _NOT_AT_A_GLANCE
        at = at + 1 + (size >> 1) if size < 0x80 else _behind_field(payload, at)
        size = payload[at]
        if size < 0x80:
            at += 1 if size & 1 else 1 + (size >> 1)
        else:
            at = _behind_field(payload, at)
    return at


def _deltas_rise(
    payload: bytes, at: int, stop: int, step: int, delta: int, ran: int, width: int
) -> bool:
    """Whether the `ran` offset deltas of two or three bytes (`width`), `step` apart from `at` on,
    are `delta`, `delta` + 1 and so on."""
    first = delta % TWO_BYTES
    last = first + ran
    if payload[at:stop:step] != _LOW[first:last]:
        return False
    column = payload[at + 1 : stop : step]
    if width == 2:
        return column == _HIGH[first:last]
    return column == _MIDDLE[first:last] and payload[at + 2 : stop : step] == (
        bytes((2 * delta >> 14,)) * ran
    )


def _fixed_bytes(payload: bytes, at: int, end: int, need_keys: bool) -> list[int]:
    """Positions of the lengths of key, value and headers in a record that ends at `end`; the first
    is `at`. Raises InvalidRecord unless it is proved valid and, with `need_keys`, has a key."""
    key = payload[at]
    value_at = at + 1 if key & 1 else at + 1 + (key >> 1)
    if key < 0x80 and payload[value_at] > 0x7F and not payload[end - 1]:
        # Most records have no headers and a value of 64 bytes to 8 KB.
        value = payload[value_at] & 0x7F | payload[value_at + 1] << 7
        if value < 1 << 14 and not value & 1 and value_at + 3 + (value >> 1) == end:
            if need_keys and key & 1:
                raise _NOT_AT_A_GLANCE
            return [at, value_at, value_at + 1, end - 1]
    fixed: list[int] = []
    key, at = _skip_field(payload, at, fixed)
    _, at = _skip_field(payload, at, fixed)
    headers = payload[at]
    fixed.append(at)
    at += 1
    if headers:
        if headers & 1 or headers > 2 * _MOST_HEADERS:
            raise _NOT_AT_A_GLANCE
        for _ in range(headers >> 1):
            name, at = _skip_field(payload, at, fixed)
            if name < 0:
                raise _NOT_AT_A_GLANCE
            _, at = _skip_field(payload, at, fixed)
    if at != end or (need_keys and key < 0):
        raise _NOT_AT_A_GLANCE
    return fixed


_NOT_AT_A_GLANCE: Final = InvalidRecord("")


def _skip_field(payload: bytes, at: int, fixed: list[int]) -> tuple[int, int]:
    """(length, position behind the field at `at`); adds the positions of its length to `fixed`."""
    fixed.append(at)
    length = payload[at]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        return length, at + 1 + length if length > 0 else at + 1
    length, after = read_varint(payload, at)
    fixed += range(at + 1, after)
    return length, after + length if length > 0 else after


def _greatest_of_column(
    payload: bytes, at: int, end: int, stop: int, step: int, claimed: int
) -> int:
    """The greatest of the timestamp deltas, which lie from `at` to `end` in the first record.

    If it is not `claimed`, any number on the same side of `claimed` may be returned.
    """
    column = payload[end - 1 : stop : step]
    if not column.isascii():
        raise _NOT_AT_A_GLANCE  # the deltas differ in width
    if end - at == 1:
        if column == column[:1] * len(column):
            return _unzigzag(column[0])
        if 0 <= claimed < ONE_BYTE:
            if column.translate(None, _NOT_ABOVE[claimed]):
                return claimed + 1
            return claimed if 2 * claimed in column else claimed - 1
        return max(map(_unzigzag, set(column)))
    if end - at == 2 and ONE_BYTE <= claimed < TWO_BYTES:
        greatest = _greatest_of_two(payload[at:stop:step], column, claimed)
        if greatest is not None:
            return greatest
    from protocol.records.scan_numpy import greatest_of_columns

    columns = [payload[place:stop:step] for place in range(at, end - 1)]
    if len(columns) > _MOST_COLUMNS or any(each.translate(None, _CONTINUED) for each in columns):
        raise _NOT_AT_A_GLANCE
    return greatest_of_columns([*columns, column])


def _greatest_of_two(lows: bytes, highs: bytes, claimed: int) -> int | None:
    """`_greatest_of_column` for two-byte deltas that never fall, as most are; else None."""
    high = 2 * claimed >> 7
    if lows.translate(None, _CONTINUED) or highs.translate(None, _LESS_OR_LIKE[high]):
        return None
    first = highs.find(high)
    if first < 0:
        return claimed - 1
    if highs[first:] != bytes((high,)) * (len(highs) - first):
        return None
    lows = lows[first:]
    if lows.translate(None, _LOW_NOT_ABOVE[claimed % ONE_BYTE]):
        return claimed + 1
    return claimed if _LOW[claimed] in lows else claimed - 1


def _unzigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)
