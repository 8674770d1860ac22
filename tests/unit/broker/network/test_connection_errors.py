"""An error in a request becomes an answer, or it ends its own connection and nothing else.

Connections with fake handlers, on both networks.
"""

import logging
import struct
from collections.abc import Callable
from typing import Any

import pytest

from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.connection_requests import (
    FETCH,
    HEARTBEAT,
    PRODUCE,
    echo,
    fetch_reply,
    heartbeat,
)
from tests.support.fake_handlers import connected
from tests.support.networks import Net, wait_until
from tests.support.wire_client import request_frame


def raising(error: Exception, *, late: bool) -> Callable[[RequestContext, Any], Any]:
    """A handler that raises when it is called, or its work does."""

    def handler(ctx: RequestContext, request: Any) -> Any:
        async def later() -> Any:
            raise error

        if late:
            return later()
        raise error

    return handler


@pytest.mark.parametrize("late", [False, True])
async def test_a_refusal_becomes_the_apis_error_response(net: Net, late: bool) -> None:
    refuse = raising(KafkaError(ErrorCode.NOT_COORDINATOR), late=late)
    async with connected(net, {HEARTBEAT: refuse}) as (harness, client):
        response = await client.call(HEARTBEAT, 4)
        assert response.error_code == ErrorCode.NOT_COORDINATOR
        assert harness.requests.statistics().requests["Heartbeat"].errors == 0


@pytest.mark.parametrize("late", [False, True])
async def test_a_bug_of_a_handler_is_logged_and_answered(
    net: Net, late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    broken = raising(ValueError("the bug"), late=late)
    async with connected(net, {HEARTBEAT: broken}) as (harness, client):
        for _ in range(2):
            response = await client.call(HEARTBEAT, 4)
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert harness.requests.statistics().requests["Heartbeat"].errors == 2
    assert "ValueError: the bug" in caplog.text


async def test_a_reply_that_cannot_be_encoded_becomes_an_error_response(net: Net) -> None:
    def wrong(ctx: RequestContext, request: Any) -> Any:
        return HeartbeatResponse(throttle_time_ms="not a number")

    async with connected(net, {HEARTBEAT: wrong}) as (_, client):
        assert (await client.call(HEARTBEAT, 4)).error_code == -1


async def test_a_reply_with_slices_that_cannot_be_encoded_leaves_nothing_behind(net: Net) -> None:
    def wrong(ctx: RequestContext, request: Any) -> Any:
        return fetch_reply(b"fine", 7) if ctx.correlation_id == 2 else fetch_reply(b"x")

    async with connected(net, {FETCH: wrong}) as (_, client):
        frames = [request_frame(FETCH, 12, correlation_id=number) for number in (1, 2, 3)]
        await client.send(b"".join(frames))
        replies = [await client.response(FETCH, 12, number) for number in (1, 2, 3)]
        assert [reply.error_code for reply in replies] == [0, -1, 0]
        assert [len(reply.responses) for reply in replies] == [1, 0, 1]


async def test_s_app_8_a_handler_may_end_the_connection_instead_of_answering(net: Net) -> None:
    def fail(ctx: RequestContext, request: Any) -> Any:
        ctx.close_connection = True

    async with connected(net, {PRODUCE: fail, HEARTBEAT: echo}) as (_, client):
        await client.send(heartbeat(1) + request_frame(PRODUCE, 9) + heartbeat(2))
        await client.response(HEARTBEAT, 4, 1)
        assert await client.closed_by_peer()


PLAIN = request_frame(HEARTBEAT, 0)


BAD_FRAMES = {
    "negative size": struct.pack(">i", -5),
    "size zero": struct.pack(">i", 0),
    "size below a header": struct.pack(">i", 7) + bytes(7),
    "larger than the limit": struct.pack(">i", 104857601),
    "unknown key": PLAIN[:4] + b"\x7f\xff" + PLAIN[6:],
    "key that is not served": request_frame(ApiKey.JOIN_GROUP, 0),
    "unknown version": PLAIN[:6] + b"\x00\x63" + PLAIN[8:],
    "negative version": PLAIN[:6] + b"\xff\xff" + bytes(100),
    "body cut short": struct.pack(">i", 12) + struct.pack(">hhihh", 12, 0, 1, -1, 5),
    "client id beyond the frame": struct.pack(">i", 10) + struct.pack(">hhih", 12, 0, 1, 30000),
    "client id not UTF-8": struct.pack(">i", 12) + struct.pack(">hhih", 12, 0, 1, 2) + b"\xff\xfe",
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_FRAMES.values(), ids=BAD_FRAMES)
async def test_bad_bytes_end_the_connection_and_nothing_else(
    net: Net, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with connected(net, {HEARTBEAT: echo}) as (harness, client):
        bystander = await harness.connect()
        await client.send(heartbeat(1) + bad)
        await client.response(HEARTBEAT, 4, 1)
        assert await client.closed_by_peer()
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 1)
        await bystander.call(HEARTBEAT, 4)
    assert sum("Closing connection" in record.message for record in caplog.records) == 1
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)


@pytest.mark.parametrize("answered", [[], [1], [1, 2, 3]])
async def test_the_requests_before_bad_bytes_are_answered(
    net: Net, answered: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """A request without a reply, as Produce with acks=0, is there too."""

    def handler(ctx: RequestContext, request: Any) -> Any:
        return echo(ctx, request) if ctx.correlation_id in answered else None

    async with connected(net, {HEARTBEAT: handler}) as (_, client):
        frames = [heartbeat(9), *map(heartbeat, answered), heartbeat(9)]
        await client.send(b"".join(frames) + BAD_FRAMES["negative size"])
        for correlation_id in answered:
            await client.response(HEARTBEAT, 4, correlation_id)
        assert await client.closed_by_peer()
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)
