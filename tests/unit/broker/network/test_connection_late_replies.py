"""Replies that come later: by workers, made aside, parked; and a client that goes first.

Connections with fake handlers, on both networks.
"""

from typing import Any

import pytest
import trio

from broker.request import Aside, Pending, RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.connection_requests import HEARTBEAT, echo, heartbeat
from tests.support.fake_handlers import running_server
from tests.support.networks import Net, wait_until


def test_s_net_1_a_parked_request_holds_back_the_replies_behind_it(net: Net) -> None:
    pending = Pending()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: park_first}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(0) + heartbeat(1) + heartbeat(2, 5))
            await client.response(HEARTBEAT, 4, 0)
            await net.settle()
            assert client.has_nothing()
            await trio.sleep(0.05)
            assert harness.channel.statistics().requests["Heartbeat"].requests == 2
            assert pending.complete(HeartbeatResponse(throttle_time_ms=3))
            assert not pending.complete(HeartbeatResponse(throttle_time_ms=4))
            assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 3
            assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5
            assert (
                harness.channel.statistics().requests["Heartbeat"].phases["remote"].total_s > 0.04
            )

    net.run(main)


def test_a_coroutine_is_run_by_a_worker_and_may_end_in_a_parked_reply(net: Net) -> None:
    pendings: list[Pending] = []

    def work(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            await trio.sleep(0.01)
            if ctx.correlation_id == 2:
                pendings.append(Pending())
                return pendings[0]
            return echo(ctx, request)

        return later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1, 11) + heartbeat(2, 12))
            assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 11
            await wait_until(lambda: bool(pendings))
            pendings[0].complete(HeartbeatResponse(throttle_time_ms=1))
            assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 1

    net.run(main)


@pytest.mark.parametrize("by", ["handler", "worker", "parked", "aside"])
def test_an_aside_is_made_without_a_worker_whoever_returns_it(net: Net, by: str) -> None:
    go = trio.Event()

    def work(ctx: RequestContext, request: Any) -> Any:
        if ctx.correlation_id == 9:
            return echo(ctx, request)

        async def make() -> Any:
            await go.wait()
            return echo(ctx, request)

        async def later() -> Any:
            return Aside(make)

        if by == "parked":
            parked = Pending()
            parked.complete(Aside(make))
            return parked
        return {"handler": Aside(make), "aside": Aside(later)}.get(by) or later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}, workers=1, queued_max=1) as harness:
            clients = [await harness.connect() for _ in range(4)]
            for number, client in enumerate(clients):
                await client.send(heartbeat(number, number) + heartbeat(9, 7))
            await net.settle()
            await trio.sleep(0.02)
            assert harness.channel.pool.statistics().busy == 0
            assert harness.channel.asides.working == 4
            go.set()
            for number, client in enumerate(clients):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number
                await client.response(HEARTBEAT, 4, 9)
            times = harness.channel.statistics().requests["Heartbeat"]
            assert times.phases["remote"].total_s > 0.04
            assert harness.channel.asides.working == 0

    net.run(main)


def test_an_aside_ends_with_its_client(net: Net) -> None:
    ended: list[str] = []

    def work(ctx: RequestContext, request: Any) -> Any:
        async def make() -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append("aside")

        return Aside(make)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: harness.channel.asides.working == 1)
            await net.settle()
            client.close()
            await wait_until(lambda: ended == ["aside"])

    net.run(main)


def test_what_an_aside_raises_is_answered(net: Net) -> None:
    def work(ctx: RequestContext, request: Any) -> Any:
        async def make() -> None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) if ctx.correlation_id else ValueError("bug")

        return Aside(make)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(0) + heartbeat(1))
            response = await client.response(HEARTBEAT, 4, 0)
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            response = await client.response(HEARTBEAT, 4, 1)
            assert response.error_code == ErrorCode.NOT_COORDINATOR

    net.run(main)


def test_work_beyond_workers_and_queue_waits_and_is_finished(net: Net) -> None:
    running = 0
    most = 0

    def work(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await trio.sleep(0.01)
            running -= 1
            return echo(ctx, request)

        return later()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: work}, workers=2, queued_max=1) as harness:
            clients = [await harness.connect() for _ in range(10)]
            for number, client in enumerate(clients):
                await client.send(heartbeat(number, number))
            for number, client in enumerate(clients):
                response = await client.response(HEARTBEAT, 4, number)
                assert response.throttle_time_ms == number
            assert most == 2

    net.run(main)


def test_a_parked_request_notices_that_its_client_has_gone(net: Net) -> None:
    dropped: list[int] = []
    pending = Pending()
    pending.on_abandon = lambda: dropped.append(1)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: lambda c, r: pending}) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            client.close()
            await wait_until(lambda: pending.abandoned)
            assert dropped == [1]
            assert not pending.done

    net.run(main)


def test_a_disconnect_behind_bytes_sent_ahead_is_noticed_by_the_sweeper(net: Net) -> None:
    pending = Pending()

    async def main() -> None:
        async with running_server(
            net, {HEARTBEAT: lambda c, r: pending}, max_idle_s=0.5
        ) as harness:
            client = await harness.connect()
            await client.send(heartbeat(1))
            await wait_until(lambda: "Heartbeat" in harness.channel.statistics().requests)
            await client.send(heartbeat(2))
            await net.settle()
            assert not pending.abandoned
            client.close()
            await wait_until(lambda: pending.abandoned)

    net.run(main)


def test_bytes_sent_ahead_of_a_parked_reply_are_not_lost(net: Net) -> None:
    pending = Pending()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: park_first}) as harness:
            client = await harness.connect()
            ahead = b"".join(heartbeat(number, number) for number in range(2, 500))
            await client.send(heartbeat(1) + ahead[:1001])
            await net.settle()
            await client.send(ahead[1001:])
            await net.settle()
            pending.complete(HeartbeatResponse())
            for number in range(1, 500):
                await client.response(HEARTBEAT, 4, number)

    net.run(main)
