"""The client that goes next, and the one that pays: rules without a broker, and a fair lock."""

from collections.abc import Callable, Iterable

import pytest
import trio

from broker.fairness import (
    CLIENT,
    HALF_LIFE_S,
    NOBODY,
    Client,
    FairLock,
    InTurn,
    LeastFirst,
    LeastUsed,
    Shares,
)
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.waits import Signal, Until, Waiters, sleep
from tests.support.begun import Begun, begin
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import VirtualClock

OLD, YOUNG = Client("here", 1), Client("here", 9)
ELSEWHERE = Client("there", 5)


def shares(**used: float) -> Shares:
    made = Shares()
    for name, amount in used.items():
        made.add({"old": OLD, "young": YOUNG, "elsewhere": ELSEWHERE}[name], amount)
    return made


@pytest.mark.parametrize(
    ("used", "least", "greediest"),
    [
        ({}, OLD, YOUNG),
        ({"old": 1}, ELSEWHERE, OLD),
        ({"elsewhere": 1}, OLD, ELSEWHERE),
        ({"old": 2, "young": 1, "elsewhere": 2}, ELSEWHERE, OLD),
        ({"old": 2, "young": 1, "elsewhere": 4}, YOUNG, ELSEWHERE),
        ({"old": 1, "young": 1, "elsewhere": 1}, ELSEWHERE, YOUNG),
        ({"old": 1, "young": 1, "elsewhere": 3}, OLD, ELSEWHERE),
    ],
)
def test_addresses_are_compared_first_then_connections_then_their_age(
    used: dict[str, float], least: Client, greediest: Client
) -> None:
    made = shares(**used)
    assert min([YOUNG, ELSEWHERE, OLD], key=made.rank) == least
    assert max([OLD, ELSEWHERE, YOUNG], key=made.rank) == greediest


def test_what_is_given_back_counts_no_more() -> None:
    made = shares(old=10, young=10)
    made.add(OLD, -10)
    assert (made.rank(OLD)[1], made.rank(YOUNG)[1], made.of_address("here")) == (0, 10, 10)
    assert min([YOUNG, OLD], key=made.rank) == OLD


def test_what_was_used_is_forgotten_by_halves_and_then_altogether() -> None:
    clock = ManualClock()
    made = Shares(clock.monotonic, half_life_s=HALF_LIFE_S)
    made.add(OLD, 8)
    clock.advance(HALF_LIFE_S)
    assert made.rank(OLD)[1] == pytest.approx(4)
    made.add(OLD, 1)
    clock.advance(HALF_LIFE_S)
    assert made.of_address("here") == pytest.approx(2.5)
    for number in range(1000):
        clock.advance(HALF_LIFE_S)
        made.add(Client(f"address {number}", number), 1)
    assert len(made._uses) <= 256


def add(line: Waiters[Client], clients: Iterable[Client]) -> list[Begun]:
    """Have work of each client wait; its position is the number that it returns."""

    async def wait(client: Client, number: int) -> int:
        await line.wait(client, line.admit_next)
        return number

    return [begin(wait(client, number)) for number, client in enumerate(clients)]


def called(line: Waiters[Client], waits: list[Begun]) -> int | None:
    """Call the next one; return its position."""
    before = [wait.done for wait in waits]
    if not line.admit_next():
        return None
    (number,) = (n for n, wait in enumerate(waits) if wait.done and not before[n])
    return number


@pytest.mark.parametrize(
    ("kind", "clients", "expected"),
    [
        pytest.param(LeastFirst, [YOUNG, OLD], [2, 0, 3, 1], id="who came first"),
        pytest.param(LeastUsed, [OLD, YOUNG], [2, 1, 3, 0], id="the connection that has least"),
    ],
)
def test_the_address_that_has_least_is_next_and_in_it(
    kind: Callable[[Shares], Waiters[Client]], clients: list[Client], expected: list[int]
) -> None:
    made = shares(old=3, elsewhere=2)
    line = kind(made)
    assert not line
    clients = [*clients, ELSEWHERE, ELSEWHERE]
    waits = add(line, clients)
    assert len(line) == 4
    came = []
    while (number := called(line, waits)) is not None:
        made.add(clients[number], 2)
        came.append(number)
    assert came == expected
    assert not line


async def turns_of(clock: VirtualClock, *clients: Client) -> list[int]:
    """Let each have a turn, in the order in which they ask; the numbers in that of their turns."""
    lock = FairLock(clock.monotonic)
    came: list[int] = []

    async def work(client: Client) -> None:
        CLIENT.set(client)
        async with lock:
            came.append(client.number)
            await sleep(1)

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(Driver(InlineWorkers(), clock).run, work(client))
            await trio.lowlevel.checkpoint()
    assert (lock.busy, lock.waiting) == (0, 0)
    return came


CROWDS = [
    ([Client("crowd", n) for n in range(80)], [Client("honest", 100)], [0, 100, 1]),
    ([Client("same", n) for n in range(10, 90)], [Client("same", 1)], [10, 1, 11]),
    ([Client("a", 1)] * 3, [Client("b", 2), Client("b", 3)], [1, 2, 1, 3, 1]),
    ([NOBODY], [NOBODY], [0, 0]),
]


@pytest.mark.parametrize(
    ("crowd", "others", "turns"),
    CROWDS,
    ids=["another address", "an older connection", "those that did not use it", "for nobody"],
)
async def test_a_crowd_delays_others_by_the_one_that_is_at_it(
    clock: VirtualClock, crowd: list[Client], others: list[Client], turns: list[int]
) -> None:
    assert CLIENT.get() == NOBODY
    assert (await turns_of(clock, *crowd, *others))[: len(turns)] == turns


async def test_a_turn_that_is_cancelled_or_fails_is_passed_on(clock: VirtualClock) -> None:
    lock = FairLock(clock.monotonic)
    came: list[str] = []

    async def work(name: str) -> None:
        async with lock:
            came.append(name)
            await sleep(1)

    async def broken() -> None:
        async with lock:
            raise ValueError("broken")

    async def at_it() -> None:
        async with lock:
            assert (lock.busy, lock.waiting) == (1, 0)

    async def one(name: str, scope: trio.CancelScope) -> None:
        with scope:
            await Driver(InlineWorkers(), clock).run(work(name))

    scopes = [trio.CancelScope() for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for name, scope in zip("abcd", scopes, strict=True):
            nursery.start_soon(one, name, scope)
            await trio.lowlevel.checkpoint()
        scopes[1].cancel()  # while it waits
        await trio.lowlevel.checkpoint()
        scopes[0].cancel()
        scopes[2].cancel()  # in the moment in which it may be called
    assert came[0] == "a"
    assert came[-1] == "d"
    assert (lock.busy, lock.waiting) == (0, 0)
    with pytest.raises(ValueError, match="broken"):
        await Driver(InlineWorkers(), clock).run(broken())
    await Driver(InlineWorkers(), clock).run(at_it())


@pytest.mark.parametrize("parks", [True, False])
def test_a_waiter_is_parked_if_it_may_leave_and_the_turn_is_passed_on(parks: bool) -> None:
    lock = FairLock(parks=parks)
    came: list[str] = []

    async def work(name: str) -> None:
        async with lock:
            came.append(name)
            await Signal[None]()

    first, second, third = (begin(work(name)) for name in "abc")
    for waits in (second, third):
        assert isinstance(waits.waits_for, Until)
        assert waits.waits_for.parked is parks
    second.leave()
    first.leave()
    assert third.waits_for
    assert came == ["a", "c"]
    third.leave()
    assert (lock.busy, lock.waiting) == (0, 0)


def test_a_waiter_that_is_called_and_leaves_passes_the_turn_on() -> None:
    lock = FairLock()

    async def work() -> str:
        async with lock:
            return "done"

    async def holding() -> None:
        async with lock:
            await Signal[None]()

    first, second = begin(holding()), work()
    assert isinstance(wait := second.send(None), Until)
    third = begin(work())
    assert (lock.busy, lock.waiting) == (1, 2)
    first.leave()
    assert wait.signal.fired
    second.close()
    assert third.reply == "done"
    assert (lock.busy, lock.waiting) == (0, 0)


def test_a_client_does_not_pay_for_a_turn_that_the_next_one_missed() -> None:
    clock = ManualClock()
    lock = FairLock(clock.monotonic)
    assert begin(lock.acquire()).done
    missed = lock.acquire()
    assert isinstance(missed.send(None), Until)
    clock.advance(1)
    lock.release()
    clock.advance(5)
    missed.close()
    assert lock._used.of_address(NOBODY.address) <= 1


def test_addresses_take_turns_and_in_each_goes_who_came_first() -> None:
    line: InTurn[Client] = InTurn()
    assert not line.admit_next()
    waits = add(line, [Client(address, 0) for address in "aaabbc"])
    assert len(line) == 6
    assert [called(line, waits) for _ in range(7)] == [0, 3, 5, 1, 4, 2, None]
    assert not line


def test_an_address_that_may_not_go_keeps_its_place_and_holds_nobody_up() -> None:
    may_go = set("bc")
    line: InTurn[Client] = InTurn(may_go.__contains__)
    waits = add(line, [Client(address, 0) for address in "aabc"])
    assert called(line, waits) == 2
    may_go.clear()
    assert called(line, waits) is None
    waits[0].leave()
    assert set(line.addresses) == {"a", "c"}
    may_go.update("ac")
    assert [called(line, waits) for _ in range(3)] == [1, 3, None]


def test_an_address_of_which_one_leaves_keeps_its_place() -> None:
    line: InTurn[Client] = InTurn()
    waits = add(line, [Client(address, 0) for address in "aab"])
    waits[0].leave()
    assert [called(line, waits) for _ in range(2)] == [1, 2]
