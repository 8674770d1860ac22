"""Large messages: their elements and bytes do not add up over connections."""

import gc
from typing import Any

import pytest
import trio

from broker.api_facts import MOST_OF_BROKERS
from broker.fairness import CLIENT, Client
from broker.network import large_messages
from broker.network.large_messages import (
    ELEMENTS_AT_ONCE,
    LARGE_REPLY_BYTES,
    MAX_REPLY_BYTES,
    PATIENCE_S,
    UNSENT_BYTES,
    LargeMessages,
    ReplyTooLarge,
    Rooms,
)
from broker.request import RequestContext
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.schema.parse_code import MAX_ELEMENTS, SMALL_ELEMENTS
from storage.waits import Signal, Until, call, sleep
from tests.support.begun import begin
from tests.support.connection_requests import DELETE_GROUPS, HEARTBEAT, deleted, groups
from tests.support.fake_handlers import Parking, connected, running_server
from tests.support.networks import Net, wait_until
from tests.support.virtual_time import VirtualClock
from tests.support.wire_client import request_frame

run = Driver(InlineWorkers(), SystemClock()).run


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


# ---- requests


async def test_a_request_waits_for_room_and_a_smaller_one_overtakes_it(clock: VirtualClock) -> None:
    large = LargeMessages(clock)
    entered = []

    async def ask(elements: int, leave: trio.Event) -> None:
        with await run(large.room_for(2 * elements)):
            entered.append(elements)
            await leave.wait()

    first, others = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, MAX_ELEMENTS, first)
        await settle()
        nursery.start_soon(ask, MAX_ELEMENTS - 1, others)
        await settle()
        nursery.start_soon(ask, ELEMENTS_AT_ONCE - MAX_ELEMENTS, others)
        await settle()
        assert entered == [MAX_ELEMENTS, ELEMENTS_AT_ONCE - MAX_ELEMENTS]
        first.set()
        await settle()
        assert entered[2:] == [MAX_ELEMENTS - 1]
        others.set()


async def test_room_is_what_the_frame_holds_once_that_is_known(clock: VirtualClock) -> None:
    large = LargeMessages(clock)
    with await run(large.room_for(100 << 20)) as room:
        assert room.elements == MAX_ELEMENTS
        room.shrink(2_000)
        with trio.fail_after(5), await run(large.room_for(2 * MAX_ELEMENTS)):
            pass
    with trio.fail_after(5), await run(large.room_for(2 * ELEMENTS_AT_ONCE)):
        pass


async def test_what_brokers_may_send_beyond_others_is_one_at_a_time_and_waits_for_no_client(
    clock: VirtualClock,
) -> None:
    large = LargeMessages(clock)
    with await run(large.room_for(2 * MAX_ELEMENTS)), trio.fail_after(5):
        with await run(large.room_for(100 << 20, MOST_OF_BROKERS)) as room:
            room.shrink(MAX_ELEMENTS + 1)
            with trio.move_on_after(0.01) as scope:
                await run(large.room_for(4 * MAX_ELEMENTS, MOST_OF_BROKERS))
            assert scope.cancelled_caught
        with await run(large.room_for(4 * MAX_ELEMENTS, MOST_OF_BROKERS)):
            pass


# ---- replies


async def test_a_reply_beyond_all_measure_is_refused(clock: VirtualClock) -> None:
    with LargeMessages(clock).reply_room(lambda: None) as room:
        await run(room.grow(MAX_REPLY_BYTES))
        with pytest.raises(ReplyTooLarge):
            await run(room.grow(MAX_REPLY_BYTES + 1))


async def test_large_replies_are_built_one_at_a_time_and_small_ones_meanwhile(
    clock: VirtualClock,
) -> None:
    large = LargeMessages(clock)
    with large.reply_room(lambda: None) as first, large.reply_room(lambda: None) as second:
        await run(first.grow(LARGE_REPLY_BYTES + 1))
        await run(second.grow(LARGE_REPLY_BYTES))
        with trio.move_on_after(0.01) as scope:
            await run(second.grow(LARGE_REPLY_BYTES + 1))
        assert scope.cancelled_caught
        first.built(LARGE_REPLY_BYTES + 1)
        await run(second.grow(LARGE_REPLY_BYTES + 1))


async def test_a_client_that_takes_its_reply_too_slowly_gives_way_to_a_waiter(
    clock: VirtualClock,
) -> None:
    large = LargeMessages(clock)
    aborted = trio.Event()

    async def slow() -> None:
        with large.reply_room(aborted.set) as room:
            await run(room.grow(MAX_REPLY_BYTES))
            room.built(UNSENT_BYTES + 1)
            await aborted.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        await settle()
        began = clock.monotonic()
        with large.reply_room(lambda: None) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
        assert PATIENCE_S <= clock.monotonic() - began <= 2 * PATIENCE_S


def test_a_waiter_that_ends_leaves_the_way_free_and_passes_on_the_room_that_it_had() -> None:
    rooms = Rooms(10)
    room = begin(rooms.take(10)).reply
    woken = rooms.take(7)
    wait = woken.send(None)
    begin(rooms.take(3)).leave()
    others = [begin(rooms.take(size)) for size in (6, 4, 1)]
    room.shrink(0)
    assert isinstance(wait, Until)
    assert wait.signal.fired
    assert [other.done for other in others] == [False, False, True]
    woken.close()
    assert [other.done for other in others] == [True, False, True]


def test_a_request_that_fits_exactly_takes_all_the_room_that_is_given_back() -> None:
    rooms = Rooms(10)
    room = begin(rooms.take(10)).reply
    others = [begin(rooms.take(size)) for size in (10, 1)]
    room.shrink(0)
    assert [other.done for other in others] == [True, False]


async def test_a_large_reply_that_is_never_whole_leaves_the_way_free(clock: VirtualClock) -> None:
    large = LargeMessages(clock)
    with pytest.raises(ReplyTooLarge), large.reply_room(lambda: None) as room:
        await run(room.grow(LARGE_REPLY_BYTES + 1))
        await run(room.grow(MAX_REPLY_BYTES + 1))
    with trio.fail_after(5), large.reply_room(lambda: None) as room:
        await run(room.grow(LARGE_REPLY_BYTES + 1))


async def test_a_client_that_goes_while_its_reply_waits_leaves_the_way_free(
    clock: VirtualClock,
) -> None:
    large = LargeMessages(clock)
    with large.reply_room(lambda: None) as unsent:
        await run(unsent.grow(MAX_REPLY_BYTES))
        unsent.built(UNSENT_BYTES + 1)
        with trio.move_on_after(0.01) as gone, large.reply_room(lambda: None) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
        assert gone.cancelled_caught
    with trio.fail_after(5), large.reply_room(lambda: None) as room:
        await run(room.grow(LARGE_REPLY_BYTES + 1))


async def test_the_oldest_reply_that_is_not_taken_gives_way_and_no_young_one(
    clock: VirtualClock,
) -> None:
    large = LargeMessages(clock)
    begin = clock.monotonic()
    aborted: list[tuple[str, float]] = []

    async def slow(name: str, until: float) -> None:
        def abort() -> None:
            aborted.append((name, clock.monotonic() - begin))
            given_up.set()

        given_up = trio.Event()
        with large.reply_room(abort) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
            room.built(UNSENT_BYTES // 2)
            with clock.timeout(until):
                await given_up.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow, "old", 1000)
        await clock.sleep(1)
        nursery.start_soon(slow, "young", 1000)
        await clock.sleep(1)
        nursery.start_soon(slow, "taken in time", PATIENCE_S - 3)
        await clock.sleep(1)
        built = clock.monotonic()
        with large.reply_room(lambda: None) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
        # When a client had its reply there was room: nobody had to go.
        assert clock.monotonic() - built == pytest.approx(PATIENCE_S - 4)
        assert aborted == []
        nursery.start_soon(slow, "last", 1000)
        await clock.sleep(1)
        with large.reply_room(lambda: None) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
        assert [name for name, _ in aborted] == ["old"]
        nursery.cancel_scope.cancel()


async def test_a_client_has_its_time_also_when_others_wait_already(clock: VirtualClock) -> None:
    large = LargeMessages(clock)
    ended = trio.Event()

    async def take(size: int, seconds: float) -> None:
        with large.reply_room(ended.set) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
            room.built(size)
            with clock.timeout(seconds):
                await ended.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, UNSENT_BYTES // 2, PATIENCE_S - 1)
        await clock.sleep(PATIENCE_S - 2)
        nursery.start_soon(take, UNSENT_BYTES + 1, PATIENCE_S * 10)
        await clock.sleep(0.5)
        began = clock.monotonic()
        with large.reply_room(lambda: None) as room:
            # The first one is taken meanwhile: that is not enough, and the second one is young.
            await run(room.grow(LARGE_REPLY_BYTES + 1))
        assert ended.is_set()
        assert clock.monotonic() - began == pytest.approx(PATIENCE_S + 0.5)


async def test_as_many_replies_that_are_not_taken_give_way_as_make_room(
    clock: VirtualClock,
) -> None:
    """Those of the client that keeps most first; and of two that wait, who keeps less is next."""
    large = LargeMessages(clock)
    aborted: list[Client] = []
    served: list[tuple[Client, float]] = []

    async def slow(client: Client, size: int) -> None:
        CLIENT.set(client)
        gone = trio.Event()

        def abort() -> None:
            aborted.append(client)
            gone.set()

        with large.reply_room(abort) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
            room.built(size)
            await gone.wait()

    async def quick(client: Client) -> None:
        CLIENT.set(client)
        with large.reply_room(lambda: None) as room:
            await run(room.grow(LARGE_REPLY_BYTES + 1))
            served.append((client, clock.monotonic()))
            room.built(LARGE_REPLY_BYTES + 1)

    few, many = Client("few", 1), Client("many", 2)
    async with trio.open_nursery() as nursery:
        for client, size in ((few, 1), (many, 8), (many, 8), (few, 1), (many, 62)):
            nursery.start_soon(slow, client, size * (UNSENT_BYTES // 64))
            await clock.sleep(0.01)
        began = clock.monotonic()
        nursery.start_soon(quick, Client("first", 8))  # it waits for room, the others for it
        await clock.sleep(0.01)
        nursery.start_soon(quick, many)
        await clock.sleep(0.01)
        nursery.start_soon(quick, Client("new", 9))
        await clock.sleep(PATIENCE_S + 1)
        assert aborted == [many, many]
        assert [client.address for client, _ in served] == ["first", "new", "many"]
        assert served[-1][1] - began == pytest.approx(PATIENCE_S)
        nursery.cancel_scope.cancel()


# ---- on a connection


async def test_a_request_of_many_elements_is_told_so_to_its_handler(net: Net) -> None:
    seen = []

    def behave(ctx: RequestContext, request: Any) -> Any:
        seen.append((len(request.groups_names), ctx.large))
        return deleted(request.groups_names)

    async with connected(net, {DELETE_GROUPS: behave}) as (_, client):
        for count in (SMALL_ELEMENTS, SMALL_ELEMENTS + 1, 20_000):
            response = await client.call(DELETE_GROUPS, 2, groups(count))
            assert [one.group_id for one in response.results] == groups(count).groups_names
        assert seen == [
            (SMALL_ELEMENTS, False),
            (SMALL_ELEMENTS + 1, True),
            (20_000, True),
        ]


async def test_others_are_answered_while_a_large_request_is_parsed_and_its_reply_built(
    net: Net,
) -> None:
    """The replies to two requests that were sent later come first, one of them long before."""
    beats = 0
    beats_at: list[int] = []

    def delete(ctx: RequestContext, request: Any) -> Any:
        beats_at.append(beats)
        return deleted(request.groups_names)

    def beat(ctx: RequestContext, request: Any) -> Any:
        nonlocal beats
        beats += 1
        return HeartbeatResponse()

    async with running_server(net, {DELETE_GROUPS: delete, HEARTBEAT: beat}) as harness:
        large, small = await harness.connect(), await harness.connect()
        done = False

        async def beat_on() -> None:
            while not done:
                await small.call(HEARTBEAT, 4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat_on)
            await large.call(DELETE_GROUPS, 2, groups(50_000))
            done = True
        assert beats_at[0] > 0
        assert beats > beats_at[0] + 2


async def test_several_requests_in_one_send_keep_their_order(net: Net) -> None:
    behave = {
        DELETE_GROUPS: lambda ctx, request: deleted(request.groups_names),
        HEARTBEAT: lambda ctx, request: HeartbeatResponse(throttle_time_ms=ctx.correlation_id),
    }
    async with connected(net, behave) as (_, client):
        await client.send(
            request_frame(HEARTBEAT, 4, correlation_id=1)
            + request_frame(DELETE_GROUPS, 2, groups(5_000), correlation_id=2)
            + request_frame(HEARTBEAT, 4, correlation_id=3)
        )
        assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 1
        assert len((await client.response(DELETE_GROUPS, 2, 2)).results) == 5_000
        assert (await client.response(HEARTBEAT, 4, 3)).throttle_time_ms == 3


@pytest.mark.parametrize("late", [False, True])
async def test_a_large_reply_to_a_small_request(net: Net, late: bool) -> None:
    reply = deleted(groups(5_000).groups_names)

    async def behave(ctx: RequestContext, request: Any) -> Any:
        if late:
            await sleep(0)
        ctx.large = True
        return reply

    async with connected(net, {DELETE_GROUPS: behave}) as (_, client):
        assert len((await client.call(DELETE_GROUPS, 2, groups(1))).results) == 5_000


async def test_a_reply_that_is_too_large_costs_the_connection(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_messages, "MAX_REPLY_BYTES", 10_000)

    def behave(ctx: RequestContext, request: Any) -> Any:
        return deleted(request.groups_names)

    async with running_server(net, {DELETE_GROUPS: behave}) as harness:
        client, other = await harness.connect(), await harness.connect()
        await client.send(request_frame(DELETE_GROUPS, 2, groups(5_000)))
        assert await client.closed_by_peer()
        assert len((await other.call(DELETE_GROUPS, 2, groups(10))).results) == 10


async def test_a_large_request_that_is_parked_takes_no_room(net: Net) -> None:
    pendings: list[Parking] = []

    def behave(ctx: RequestContext, request: Any) -> Any:
        pendings.append(Parking())
        return pendings[-1]

    async with connected(net, {DELETE_GROUPS: behave}) as (harness, client):
        await client.send(request_frame(DELETE_GROUPS, 2, groups(5_000)))
        await settle()
        while not pendings:
            await trio.sleep(0.001)
        await settle()
        large = harness.requests.large
        with trio.fail_after(5), await run(large.room_for(2 * MAX_ELEMENTS)) as room:
            left = ELEMENTS_AT_ONCE - room.elements
            (await run(large.room_for(2 * left))).shrink(0)
        pendings[0].complete(deleted(["g"]))
        assert len((await client.response(DELETE_GROUPS, 2)).results) == 1


async def test_a_large_request_that_is_parked_with_its_elements_keeps_their_room(net: Net) -> None:
    """Its handler has not released them."""
    begun: list[Signal[Any]] = []

    async def behave(ctx: RequestContext, request: Any) -> Any:
        begun.append(Signal())
        return await begun[-1].parked()

    async with connected(net, {DELETE_GROUPS: behave}) as (harness, client):
        await client.send(request_frame(DELETE_GROUPS, 2, groups(5_000)))
        await wait_until(lambda: bool(begun))
        await settle()
        assert harness.requests.large._requests._taken >= 5_000
        begun[0].fire(deleted(["g"]))
        assert len((await client.response(DELETE_GROUPS, 2)).results) == 1
        assert harness.requests.large._requests._taken == 0


async def test_a_client_that_does_not_read_keeps_no_elements(net: Net) -> None:
    parsed: list[int] = []

    def behave(ctx: RequestContext, request: Any) -> Any:
        parsed.append(id(request))
        return deleted([f"{name}{'x' * 1_000}" for name in request.groups_names])

    async with connected(net, {DELETE_GROUPS: behave}) as (harness, client):
        await client.send(request_frame(DELETE_GROUPS, 2, groups(20_000)))
        while not parsed or any(
            id(one) in parsed and isinstance(one, DeleteGroupsRequest) for one in gc.get_objects()
        ):
            await trio.sleep(0.05)  # looking takes long, and the broker waits for it
        with trio.fail_after(5), await run(harness.requests.large.room_for(2 * MAX_ELEMENTS)):
            pass
        assert len((await client.response(DELETE_GROUPS, 2)).results) == 20_000


async def test_what_waits_for_others_takes_no_worker(net: Net) -> None:
    """CreateTopics waits for the controller; Heartbeat stands for what a worker does."""
    waited_for: list[Signal[None]] = []

    async def wait() -> Any:
        waited_for.append(Signal())
        await waited_for[-1]
        return DeleteGroupsResponse(results=[])

    async def at_once() -> Any:
        await call(int)
        return HeartbeatResponse()

    behave = {
        DELETE_GROUPS: lambda ctx, request: wait(),
        HEARTBEAT: lambda ctx, request: at_once(),
    }
    async with running_server(net, behave, workers=1) as harness:
        waiting = [await harness.connect() for _ in range(5)]
        for client in waiting:
            await client.send(request_frame(DELETE_GROUPS, 2, groups(1)))
        other = await harness.connect()
        with trio.fail_after(5):
            await other.call(HEARTBEAT, 4)
        for signal in waited_for:
            signal.fire()
        for client in waiting:
            await client.response(DELETE_GROUPS, 2)
