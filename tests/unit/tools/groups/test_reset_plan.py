"""A plan of a reset has offsets in the log's range, or a refusal that names the range."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import CommandError
from tools.groups.reset_plan import plan_reset
from tools.groups.reset_target import Kind, Target

A, B = ("orders", 0), ("orders", 1)
WORLD: dict[str, Any] = {
    "committed": {A: 20},
    "firsts": {A: 10, B: 0},
    "ends": {A: 30, B: 100},
    "at_time": {A: 12, B: 13},
    "given": {A: 15, B: 16},
}


def plan(target: Target, *places: tuple[str, int], **changed: Any) -> dict[tuple[str, int], int]:
    return plan_reset(target, places or (A, B), **{**WORLD, **changed})


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        (Target(Kind.EARLIEST), (10, 0)),
        (Target(Kind.LATEST), (30, 100)),
        (Target(Kind.CURRENT), (20, 100)),
        (Target(Kind.OFFSET, 25), (25, 25)),
        (Target(Kind.TIME, 1), (12, 13)),
        (Target(Kind.FILE), (15, 16)),
        (Target(Kind.GROUP), (15, 16)),
    ],
)
def test_each_kind_finds_its_offsets(target: Target, offsets: tuple[int, int]) -> None:
    assert plan(target) == dict(zip((A, B), offsets, strict=True))


def test_a_shift_counts_from_what_is_committed() -> None:
    assert plan(Target(Kind.SHIFT, -10), A) == {A: 10}
    assert plan(Target(Kind.SHIFT, 10), A) == {A: 30}
    with pytest.raises(CommandError, match="nothing is committed to shift in orders:1"):
        plan(Target(Kind.SHIFT, 1))


def test_every_partition_out_of_range_is_named_with_its_range() -> None:
    with pytest.raises(CommandError) as caught:
        plan(Target(Kind.OFFSET, 101))
    assert str(caught.value) == (
        "orders:0 has offsets 10 to 30, not 101; orders:1 has offsets 0 to 100, not 101."
        " Nothing was changed"
    )
    with pytest.raises(CommandError, match="orders:0 has offsets 10 to 30, not 9"):
        plan(Target(Kind.SHIFT, -11), A)


def test_the_current_offset_may_lie_below_a_log_that_moved_on() -> None:
    assert plan(Target(Kind.CURRENT), A, committed={A: 3}) == {A: 3}
    assert plan(Target(Kind.GROUP), A, given={A: 3}) == {A: 3}


@given(st.integers(0, 50), st.integers(0, 50), st.integers(-120, 120), st.integers(0, 100))
def test_a_plan_never_leaves_the_log(first: int, length: int, shift: int, committed: int) -> None:
    world = {"firsts": {A: first}, "ends": {A: first + length}, "committed": {A: committed}}
    try:
        planned = plan(Target(Kind.SHIFT, shift), A, **world)
    except CommandError:
        assert not first <= committed + shift <= first + length
    else:
        assert planned == {A: committed + shift}
        assert first <= planned[A] <= first + length
