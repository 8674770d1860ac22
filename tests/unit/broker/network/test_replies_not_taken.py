"""Requests behind replies that their client does not take (`broker.network.finishing`)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio

from broker.network.activity import State
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.leave_group import MemberResponse
from protocol.messages.registry import SPECS, response_api
from protocol.schema.lazy import Lazy
from storage.waits import Signal
from tests.support.connection_requests import FETCH, HEARTBEAT, echo, fetch_reply, heartbeat
from tests.support.fake_handlers import AsyncClient, Harness, connected
from tests.support.memory_transport import BUFFER_BYTES
from tests.support.networks import MemoryNet, wait_until
from tests.support.wire_client import request_frame

LIST_OFFSETS, LEAVE_GROUP = ApiKey.LIST_OFFSETS, ApiKey.LEAVE_GROUP
BEFORE = BUFFER_BYTES // 60_000 + 1
"""Replies before that of the request."""
NAME = "m" * 20_000
"""In the reply."""
PARKS = [(False, False), (False, True), (True, False), (True, True)]
DONE = ["began", "went on", "went on", "ended"]


@dataclass
class Behind:
    """Such a request, whose work waits for two signals, one after the other."""

    harness: Harness
    net: MemoryNet
    client: AsyncClient
    go: tuple[Signal[None], Signal[None]]
    seen: list[str]

    async def sees(self, *what: str) -> None:
        """Wait until this has happened, and nothing else."""
        await wait_until(lambda: len(self.seen) >= len(what))
        await self.net.settle()
        assert self.seen == list(what)

    async def take_replies(self) -> None:
        """Take the replies before that of the request."""
        for _ in range(BEFORE):
            await self.client.response(FETCH, 12)


@asynccontextmanager
async def queued(
    net: MemoryNet, parks: tuple[bool, bool], key: ApiKey = LEAVE_GROUP, *, has_gone: bool = False
) -> AsyncIterator[Behind]:
    """Send such a request; in this network no turn is over by the clock.

    `parks`: whether the request is parked for the first and for the second signal.

    `has_gone`: the client has, before the request is handled.
    """
    go = Signal[None](), Signal[None]()
    seen: list[str] = []
    reply = fetch_reply(bytes(60_000))  # less than a turn's; some of them fill the pipe

    async def work(ctx: RequestContext, request: Any) -> Any:
        seen.append("began")
        try:
            for signal, is_parked in zip(go, parks, strict=True):
                await (signal.parked() if is_parked else signal)
                seen.append("went on")
        finally:
            seen.append("ended")
        answer = response_api(key)(throttle_time_ms=7)
        if key is LEAVE_GROUP:
            answer.members = [MemberResponse(member_id=NAME)]
        return answer

    handlers = {FETCH: lambda ctx, request: reply, HEARTBEAT: echo, key: work}
    async with connected(net, handlers) as (harness, client):
        for _ in range(BEFORE - 1):
            await client.send(request_frame(FETCH, 12))
            await net.settle()
        frames = [request_frame(FETCH, 12), request_frame(key, SPECS[key].max_version)]
        await client.send(b"".join(frames))
        behind = Behind(harness, net, client, go, seen)
        if has_gone:
            net.reset(client.stream)
        else:
            await behind.sees("began")
        yield behind


async def is_answered(behind: Behind, key: ApiKey = LEAVE_GROUP) -> None:
    """Take its reply and that of one request more."""
    answer = await behind.client.response(key, SPECS[key].max_version)
    assert answer.throttle_time_ms == 7
    await behind.client.send(heartbeat(2, 5))
    assert (await behind.client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5


@pytest.mark.parametrize("key", [LEAVE_GROUP, LIST_OFFSETS])
@pytest.mark.parametrize("parks", PARKS)
async def test_its_work_is_done_before_its_client_takes_a_reply(
    pipes: MemoryNet, parks: tuple[bool, bool], key: ApiKey
) -> None:
    async with queued(pipes, parks, key) as behind:
        for done, signal in enumerate(behind.go, 2):
            signal.fire()
            await behind.sees(*DONE[: done if done == 2 else None])
        await behind.take_replies()
        await is_answered(behind, key)


async def test_its_reply_counts_with_those_before(pipes: MemoryNet) -> None:
    """So clients that read nothing cannot have more made for them than is kept for all."""
    async with queued(pipes, (False, False)) as behind:
        backlog = behind.harness.server._services.backlog
        before = backlog.bytes
        assert before > 0
        for signal in behind.go:
            assert backlog.bytes == before
            signal.fire()
            await behind.net.settle()
        assert len(NAME) <= backlog.bytes - before < len(NAME) + 100
        (connection,) = behind.harness.server._connections
        assert connection.kept == backlog.bytes
        await behind.take_replies()
        await is_answered(behind)
        assert (backlog.bytes, connection._state.ahead) == (0, 0)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_reply_of_many_elements_is_encoded_when_its_turn_has_come(
    pipes: MemoryNet, waits: bool
) -> None:
    """To encode it before, whole, would hold the loop for seconds."""
    made: list[int] = []
    is_done = Signal[None]()

    def member(number: int) -> MemberResponse:
        made.append(number)
        return MemberResponse(member_id=str(number))

    def large(ctx: RequestContext, request: Any) -> Any:
        ctx.large = True
        is_done.fire()
        return response_api(LEAVE_GROUP)(members=Lazy(range(3), member))

    async def large_later(ctx: RequestContext, request: Any) -> Any:
        await is_let_go
        return large(ctx, request)

    is_let_go = Signal[None]()
    reply = fetch_reply(bytes(60_000))
    handlers = {FETCH: lambda ctx, request: reply, LEAVE_GROUP: large_later if waits else large}
    async with connected(pipes, handlers) as (harness, client):
        for _ in range(BEFORE - 1):
            await client.send(request_frame(FETCH, 12))
            await pipes.settle()
        await client.send(request_frame(FETCH, 12) + request_frame(LEAVE_GROUP, 5))
        await pipes.settle()
        kept = harness.server._services.backlog.bytes
        assert kept > 0
        is_let_go.fire()
        await pipes.settle()
        assert is_done.fired
        assert (made, harness.server._services.backlog.bytes) == ([], kept)
        for _ in range(BEFORE):
            await client.response(FETCH, 12)
        answer = await client.response(LEAVE_GROUP, 5)
        assert [one.member_id for one in answer.members] == ["0", "1", "2"]
        assert made == [0, 1, 2]


@pytest.mark.parametrize("parks", PARKS)
@pytest.mark.parametrize("fired", [0, 1])
async def test_its_connection_goes_on_with_it_when_the_replies_are_taken(
    pipes: MemoryNet, fired: int, parks: tuple[bool, bool]
) -> None:
    async with queued(pipes, parks) as behind:
        for signal in behind.go[:fired]:
            signal.fire()
        await behind.sees(*DONE[: 1 + fired])
        await behind.take_replies()
        await behind.net.settle()
        assert behind.client.has_nothing()
        (connection,) = behind.harness.server._connections
        assert connection.state is (State.PARKED if parks[fired] else State.BUSY)
        for signal in behind.go[fired:]:
            signal.fire()
        await behind.sees(*DONE)
        await is_answered(behind)


@pytest.mark.parametrize("key", [LEAVE_GROUP, LIST_OFFSETS])
@pytest.mark.parametrize("parks", PARKS)
@pytest.mark.parametrize("fired", [0, 1])
async def test_it_ends_with_its_client_if_it_is_parked_or_changes_nothing(
    pipes: MemoryNet, fired: int, parks: tuple[bool, bool], key: ApiKey
) -> None:
    async with queued(pipes, parks, key) as behind:
        for signal in behind.go[:fired]:
            signal.fire()
        await behind.sees(*DONE[: 1 + fired])
        behind.net.reset(behind.client.stream)
        await behind.net.settle()
        if key is LIST_OFFSETS or parks[fired]:
            await behind.sees(*DONE[: 1 + fired], "ended")
            return
        await behind.sees(*DONE[: 1 + fired])
        behind.go[fired].fire()
        if fired == 0 and parks[1]:  # nobody is there to be parked for
            await behind.sees("began", "went on", "ended")
            return
        behind.go[1].fire()
        await behind.sees(*DONE)


@pytest.mark.parametrize("parks", PARKS)
async def test_it_is_finished_if_its_client_had_gone_before_the_replies_were_sent(
    pipes: MemoryNet,
    parks: tuple[bool, bool],
) -> None:
    async with queued(pipes, parks, has_gone=True) as behind:
        if parks[0]:
            await behind.sees("began", "ended")
            return
        await behind.sees("began")
        behind.go[0].fire()
        if not parks[1]:
            behind.go[1].fire()
        await wait_until(lambda: behind.seen[-1] == "ended")


@pytest.mark.parametrize("fires_before", [False, True])
async def test_the_time_until_the_replies_are_taken_is_remote(
    pipes: MemoryNet, fires_before: bool
) -> None:
    async with queued(pipes, (False, False)) as behind:
        if fires_before:
            await trio.sleep(2)
            for signal in behind.go:
                signal.fire()
        await trio.sleep(1)
        await behind.take_replies()
        await behind.net.settle()
        if not fires_before:
            await trio.sleep(2)
            for signal in behind.go:
                signal.fire()
        await is_answered(behind)
        phases = behind.harness.requests.statistics().requests["LeaveGroup"].phases
        assert phases["remote"].total_s == pytest.approx(3, abs=0.1)
        assert phases["queue"].total_s + phases["local"].total_s < 0.1


@pytest.mark.parametrize("parks", PARKS)
@pytest.mark.parametrize("has_gone", [False, True])
async def test_it_is_dropped_when_the_broker_stops(
    pipes: MemoryNet, parks: tuple[bool, bool], has_gone: bool
) -> None:
    async with queued(pipes, parks) as behind:
        if has_gone:
            behind.net.reset(behind.client.stream)
            await behind.net.settle()
        await behind.harness.server.close(0.1)
        assert behind.seen == ["began", "ended"]
