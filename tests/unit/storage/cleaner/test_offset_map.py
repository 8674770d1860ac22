"""The map from key to latest offset, held against a dict (S-CMP-3)."""

import math
import random

import numpy as np
import pytest
from xxhash import xxh3_128_digest

from storage.cleaner import offset_map as offset_map_module
from storage.cleaner.offset_map import ENTRY_BYTES, OffsetMap


def put(offset_map: OffsetMap, pairs: list[tuple[bytes, int]]) -> int:
    offsets = np.array([offset for _, offset in pairs], np.int64)
    return offset_map.put_all(offset_map.hashes_of([key for key, _ in pairs]), offsets)


def latest(offset_map: OffsetMap, keys: list[bytes]) -> list[int]:
    found: list[int] = offset_map.latest_of(offset_map.hashes_of(keys)).tolist()
    return found


def test_s_cmp_3_a_key_is_sixteen_bytes_of_hash() -> None:
    keys = [b"", b"a", b"key" * 100]
    hashes = OffsetMap(10).hashes_of(keys)
    assert hashes.tobytes() == b"".join(xxh3_128_digest(key) for key in keys)
    assert OffsetMap(10).hashes_of([]).shape == (0, 2)


def test_no_two_seeds_give_a_key_the_same_hash() -> None:
    """So keys that collide in one cleaning do not in the next one."""
    keys = [b"", b"a", b"key" * 100]
    one, other = (OffsetMap(10, hash_seed=seed).hashes_of(keys) for seed in (1, 2**64 - 1))
    assert (one != other).all()


def test_s_cmp_3_an_entry_takes_24_bytes_and_nine_tenths_are_used() -> None:
    offset_map = OffsetMap.of_bytes(24 * 1000 + 23)
    assert (ENTRY_BYTES, offset_map.slots, offset_map.capacity) == (24, 1000, 900)
    assert put(offset_map, [(b"%d" % n, n) for n in range(950)]) == 900
    assert (offset_map.size, offset_map.utilization) == (900, 0.9)
    offset_map.latest_offset = 899
    offset_map._check()


@pytest.mark.parametrize("slots", [0, 1])
def test_s_cmp_3_a_map_without_room_for_two_keys_is_refused(slots: int) -> None:
    with pytest.raises(ValueError, match="too small"):
        OffsetMap(slots)


@pytest.mark.parametrize(("load_factor", "capacity"), [(5.0, 100), (math.inf, 100), (0.5, 50)])
def test_s_cmp_3_a_map_never_holds_more_than_its_slots(load_factor: float, capacity: int) -> None:
    assert OffsetMap(100, load_factor).capacity == capacity


def test_s_cmp_3_a_load_factor_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        OffsetMap(100, math.nan)


@pytest.mark.parametrize("load_factor", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("slots", [3, 64, 500])
def test_s_cmp_3_it_says_what_a_dict_says(slots: int, load_factor: float) -> None:
    """A full map takes no known key either: Kafka counts keys before each record."""
    chance = random.Random(slots)
    offset_map, model = OffsetMap(slots, load_factor), dict[bytes, int]()
    offset = 0
    for _ in range(25):
        pairs = []
        for _ in range(chance.randrange(1, 20)):
            offset += chance.randrange(1, 5)
            pairs.append((b"k%d" % chance.randrange(slots * 2), offset))
        expected = 0
        for key, at in pairs:
            if len(model) >= offset_map.capacity:
                break
            model[key] = at
            expected += 1
        assert put(offset_map, pairs) == expected
        offset_map.latest_offset = offset
        offset_map._check()
        assert offset_map.size == len(model)
        keys = [b"k%d" % n for n in range(slots * 2)]
        assert latest(offset_map, keys) == [model.get(key, -1) for key in keys]


def test_s_cmp_3_keys_that_begin_at_one_row_find_their_own() -> None:
    offset_map = OffsetMap(200)
    # All of one first row and one stride: they go the same way, and end one behind the other.
    hashes = np.array([[200 * n, 200 * n] for n in range(150)], np.uint64)
    assert offset_map.put_all(hashes, np.arange(150)) == 150
    assert offset_map.latest_of(hashes).tolist() == list(range(150))
    assert offset_map.latest_of(hashes + np.uint64(1)).tolist() == [-1] * 150
    offset_map.latest_offset = 149
    offset_map._check()


def test_the_table_grows_with_its_keys_up_to_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map_module, "_FIRST_ROWS", 8)
    monkeypatch.setattr(offset_map_module, "_MOVED", 24 * 200)
    monkeypatch.setattr(offset_map_module, "_AT_ONCE", 5)
    offset_map = OffsetMap(1000)
    rows = []
    for at in range(0, 900, 4):
        assert put(offset_map, [(b"%d" % n, n) for n in range(at, at + 4)]) == 4
        offset_map.latest_offset = at + 3
        rows.append(len(offset_map._table))
        offset_map._check()
    assert sorted(set(rows)) == [8, 32, 128, 1000]
    assert latest(offset_map, [b"%d" % n for n in range(902)]) == [*range(900), -1, -1]
    assert (offset_map.utilization, put(offset_map, [(b"900", 900)])) == (0.9, 0)
