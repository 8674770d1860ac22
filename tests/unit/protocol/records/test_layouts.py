"""Layouts that were learned: what they let pass is what a decoder of records finds sound."""

from collections.abc import Sequence

import pytest

from protocol.records import layouts
from protocol.records.builder import assemble_batch, encode_record
from protocol.records.layouts import Layouts
from protocol.records.record import iter_records

T = 1_700_000_000_000


def payload_of(
    count: int,
    key: bytes | None,
    value: bytes,
    times: tuple[int, ...] = (0,),
    headers: Sequence[tuple[str, bytes]] = (),
) -> bytes:
    return b"".join(
        encode_record(at, times[at % len(times)], key, value, headers) for at in range(count)
    )


def taught(payload: bytes, count: int) -> Layouts:
    known = Layouts()
    known.learn(payload, count)
    return known


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63])
@pytest.mark.parametrize("size", [0, 1, 50, 57, 58, 60, 63, 64, 65, 1000, 8000])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 145, 700])
def test_a_shape_is_known_again(key: bytes | None, size: int, count: int) -> None:
    known = taught(payload_of(count, key, bytes(size)), count)
    again = payload_of(count, key, b"\xff" * size, (0, 3, 40))
    greatest = (0, 3, 40)[min(count, 3) - 1]
    assert known.is_known(again, count, greatest)
    assert not known.is_known(again, count, greatest + 1)
    assert not known.is_known(again, count, greatest - 1)
    assert not known.is_known(again, count - 1, greatest)
    longer = again + b"\0"
    assert not known.is_known(longer, count, greatest)
    assert not taught(longer, count).is_known(longer, count, greatest)


@pytest.mark.parametrize(("key", "value"), [(None, b"v" * 3), (b"key", b"v" * 12)])
def test_no_changed_byte_is_overlooked(key: bytes | None, value: bytes) -> None:
    count = 67
    payload = payload_of(count, key, value, (5, 1, 7))
    known = taught(payload, count)
    assert known.is_known(payload, count, 7)
    passed = 0
    for at in range(len(payload)):
        for flipped in (1, 2, 0x80):
            changed = payload[:at] + bytes((payload[at] ^ flipped,)) + payload[at + 1 :]
            if known.is_known(changed, count, 7):
                batch = assemble_batch(
                    changed,
                    base_offset=0,
                    last_offset_delta=count - 1,
                    record_count=count,
                    base_timestamp=T,
                    max_timestamp=T + 7,
                    attributes=0,
                )
                rows = list(iter_records(batch))
                assert [row.offset for row in rows] == list(range(count))
                assert max(row.timestamp for row in rows) == T + 7
                passed += 1
    assert passed > count * len(value)  # values may be anything


def test_records_of_the_same_size_with_headers_are_another_layout() -> None:
    with_headers = payload_of(70, None, b"v" * 20, headers=[("h", b"1")])
    without = payload_of(70, None, b"v" * 24)
    assert len(with_headers) == len(without)
    known = taught(without, 70)
    assert not known.is_known(with_headers, 70, 0)
    assert not taught(with_headers, 70).is_known(with_headers, 70, 0)


def test_later_timestamps_are_left_to_others() -> None:
    assert not taught(payload_of(3, None, b"v"), 3).is_known(payload_of(3, None, b"v"), 3, 64)
    late = payload_of(3, None, b"v", (0, 64, 64))
    assert not taught(late, 3).is_known(late, 3, 64)


def test_they_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "_MOST_RECORDS", 100)
    known = Layouts()
    shapes = {size: payload_of(30, None, bytes(size)) for size in range(20, 24)}
    for payload in shapes.values():
        known.learn(payload, 30)
    assert [known.is_known(payload, 30, 0) for payload in shapes.values()] == [False] * 3 + [True]
