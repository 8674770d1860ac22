"""The connection that is closed when there are too many strangers, compared with a model."""

from dataclasses import dataclass
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.network.activity import Ending
from broker.network.strangers import StrangerLimits, Strangers
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import VirtualClock

LONGEST_S = 10.0


class FakeConnection:
    """Has an address and remembers why it was closed."""

    def __init__(self, address: str, number: int) -> None:
        self.info = self
        self.peer_host = address
        self.number = number
        self.reason: Ending | None = None

    def push_out(self, reason: Ending) -> None:
        assert self.reason is None
        self.reason = reason

    def __repr__(self) -> str:
        return f"{self.peer_host}{self.number}"


def made(total: int, per_address: int, clock: Any) -> tuple[Strangers, list[Any]]:
    closed: list[Any] = []
    limits = StrangerLimits(total=total, per_address=per_address, longest_s=LONGEST_S)
    return Strangers(limits, clock, lambda one, reason: closed.append((one, reason))), closed


@dataclass
class Model:
    """The same by counting all of them."""

    total: int
    per_address: int

    def __post_init__(self) -> None:
        self.crowd: list[FakeConnection] = []

    def count(self, address: str) -> int:
        return sum(one.peer_host == address for one in self.crowd)

    def may_go(self, newcomer: FakeConnection) -> list[FakeConnection]:
        """One of these; nobody if there is room."""
        addresses = {newcomer.peer_host}
        if self.count(newcomer.peer_host) < self.per_address:
            if len(self.crowd) < self.total:
                return []
            most = max(self.count(one.peer_host) for one in self.crowd)
            addresses = {one.peer_host for one in self.crowd if self.count(one.peer_host) == most}
        oldest: dict[str, FakeConnection] = {}
        for one in self.crowd:
            oldest.setdefault(one.peer_host, one)
        return [oldest[address] for address in addresses]


@given(
    total=st.integers(1, 6),
    per_address=st.integers(1, 4),
    steps=st.lists(st.one_of(st.sampled_from("abcd"), st.integers(0, 5)), max_size=60),
)
@settings(max_examples=300)
def test_a_newcomer_is_let_in_and_the_oldest_of_the_greediest_has_to_go(
    total: int, per_address: int, steps: list[str | int]
) -> None:
    strangers, closed = made(total, per_address, ManualClock())
    model = Model(total, per_address)
    for number, step in enumerate(steps):
        if isinstance(step, int):  # somebody authenticates, or leaves
            if step < len(model.crowd):
                strangers.remove(model.crowd.pop(step))  # type: ignore[arg-type]
            continue
        newcomer = FakeConnection(step, number)
        may_go, before = model.may_go(newcomer), len(closed)
        strangers.add(newcomer)  # type: ignore[arg-type]
        gone = [one for one, _ in closed[before:]]
        if may_go:
            assert len(gone) == 1
            assert gone[0] in may_go
            assert gone[0].reason is Ending.PUSHED_OUT
            model.crowd.remove(gone[0])
        else:
            assert gone == []
        model.crowd.append(newcomer)
        assert len(strangers) == len(model.crowd) <= total
        assert model.count(step) <= per_address
    for one in [*model.crowd, *(gone for gone, _ in closed)]:
        strangers.remove(one)  # type: ignore[arg-type]
    assert len(strangers) == 0
    assert not strangers._by_address
    assert not strangers._by_count


async def test_a_stranger_is_closed_in_the_moment_when_its_time_is_over(
    clock: VirtualClock,
) -> None:
    strangers, closed = made(10, 10, clock)
    first, second, third = (FakeConnection("a", n) for n in range(3))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(strangers.run)
        await trio.sleep(5)
        strangers.add(first)  # type: ignore[arg-type]
        await trio.sleep(3)
        strangers.add(second)  # type: ignore[arg-type]
        strangers.add(third)  # type: ignore[arg-type]
        await trio.sleep(1)
        strangers.remove(second)  # type: ignore[arg-type]
        await trio.sleep(5.9)
        assert first.reason is None
        await trio.sleep(0.2)
        assert first.reason is Ending.LATE
        assert third.reason is None
        await trio.sleep(3)
        assert closed == [(first, Ending.LATE), (third, Ending.LATE)]
        assert second.reason is None
        for gone_while_it_was_next in (first, second):
            strangers.add(gone_while_it_was_next)  # type: ignore[arg-type]
            await trio.sleep(5)
            strangers.remove(gone_while_it_was_next)  # type: ignore[arg-type]
        await trio.sleep(20)
        assert len(closed) == 2
        nursery.cancel_scope.cancel()
