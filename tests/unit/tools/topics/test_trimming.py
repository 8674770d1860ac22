"""The plan of `topics --trim`, from offsets, times and ends."""

import pytest

from tools.errors import CommandError
from tools.topics.trimming import Before, parse_before, plan

A, B = ("orders", 0), ("orders", 1)
STARTS, ENDS = {A: 10, B: 0}, {A: 30, B: 100}
NOW = 1_700_000_000_000


def new_starts(before: Before, at_time: dict[tuple[str, int], int] | None = None) -> list[int]:
    return [each.new_start for each in plan(STARTS, ENDS, before, at_time or {})]


def test_the_end_of_a_trim() -> None:
    assert parse_before("end", NOW) == parse_before("latest", NOW) == Before()
    assert parse_before("1200", NOW) == Before(offset=1200)
    assert parse_before("@1200", NOW) == Before(moment=1200)
    assert parse_before("2h", NOW) == Before(moment=NOW - 7_200_000)
    assert parse_before("2023-01-01", NOW).moment == 1_672_531_200_000
    for text, said in (("soon", "'soon' is no time"), ("2033-01-01", "lies ahead")):
        with pytest.raises(CommandError, match=said):
            parse_before(text, NOW)


def test_offsets_times_and_the_end() -> None:
    assert new_starts(Before()) == [30, 100]
    assert new_starts(Before(offset=20)) == [20, 20]
    assert new_starts(Before(offset=5)) == [10, 5]  # A begins behind it already
    assert new_starts(Before(moment=1), {A: 12, B: -1}) == [12, 100]  # B: all are older
    assert sum(each.deleted for each in plan(STARTS, ENDS, Before(offset=5), {})) == 5


def test_an_offset_behind_an_end_is_refused_for_all() -> None:
    with pytest.raises(CommandError, match="orders:0 has offsets 10 to 30, not 31; nothing was"):
        plan(STARTS, ENDS, Before(offset=31), {})
