"""The table of routes that a connection is given, and what changes with another one."""

from typing import Any

import pytest

from broker.api_facts import by_key
from broker.network.connection import Connection
from broker.network.request_services import RequestServices
from broker.network.routes import RouteTable
from broker.request import ConnectionInfo, RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterResponse
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.fake_handlers import (
    AsyncClient,
    Harness,
    connected,
    empty_reply,
    fake,
    running_server,
)
from tests.support.networks import Net, wait_until
from tests.support.wire_client import request_frame

HEARTBEAT, VERSIONS = ApiKey.HEARTBEAT, ApiKey.API_VERSIONS
HANDSHAKE = ApiKey.DESCRIBE_CLUSTER
"""Stands in for SaslHandshake, of which there is no message yet."""


class Doorkeeper:
    """Stands in for an authenticator: who shakes hands is let in."""

    def __init__(self, *listeners: str) -> None:
        self.listeners = listeners
        self.seen: list[ConnectionInfo] = []

    def entrance(self, requests: RequestServices, connection: Connection) -> None:
        if connection.info.listener_name not in self.listeners:
            return

        def shake_hands(ctx: RequestContext, request: Any) -> Any:
            connection.use(requests.routes, "User:alice")
            return DescribeClusterResponse()

        strangers = by_key(
            (fake(VERSIONS, empty_reply(VERSIONS), (0, 4)), fake(HANDSHAKE, shake_hands, (0, 1)))
        )
        connection.use(requests.table(strangers))

    def serve(self, ctx: RequestContext, request: Any) -> Any:
        """A handler of the table inside."""
        self.seen.append(ctx.connection)
        return HeartbeatResponse(throttle_time_ms=7)


def test_the_versions_and_keys_that_are_served_have_routes() -> None:
    """A member of a cluster serves fewer versions than there are (`cluster_apis`)."""
    table = RouteTable(by_key([fake(HEARTBEAT, empty_reply(HEARTBEAT), (1, 3))]), {})
    served = [version for version in range(-1, 6) if table.route(HEARTBEAT, version)]
    assert served == [1, 2, 3]
    others = (-1, VERSIONS, 9999)  # below all, known, above all
    assert [table.route(key, 1) for key in others] == [None] * 3
    assert table.route(HEARTBEAT, 2) is table.route(HEARTBEAT, 2)


async def refused(harness: Harness, client: AsyncClient) -> None:
    assert await client.closed_by_peer()
    await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 0)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "ANOTHER"])
async def test_a_stranger_is_served_what_its_table_has_and_nothing_else(
    net: Net, listener: str
) -> None:
    door = Doorkeeper(listener)
    async with connected(net, {HEARTBEAT: door.serve}, entrance=door.entrance) as (harness, client):
        if listener == "ANOTHER":
            await client.call(HEARTBEAT, 4)
            await client.send(request_frame(HANDSHAKE, 1))
        else:
            await client.call(VERSIONS, 4)
            await client.send(request_frame(HEARTBEAT, 4))
        await refused(harness, client)
    assert len(door.seen) == (listener == "ANOTHER")


async def test_another_table_holds_from_the_next_request_on_also_of_those_sent_ahead(
    net: Net,
) -> None:
    door = Doorkeeper("PLAINTEXT")
    async with running_server(net, {HEARTBEAT: door.serve}, entrance=door.entrance) as harness:
        client, stranger = await harness.connect(), await harness.connect()
        await client.send(
            request_frame(VERSIONS, 4, correlation_id=1)
            + request_frame(HANDSHAKE, 1, correlation_id=2)
            + request_frame(HEARTBEAT, 4, correlation_id=3)
        )
        await client.response(VERSIONS, 4, 1)
        await client.response(HANDSHAKE, 1, 2)
        assert (await client.response(HEARTBEAT, 4, 3)).throttle_time_ms == 7
        # The handshake is behind it, and others have still to come in.
        await client.send(request_frame(HANDSHAKE, 1))
        assert await client.closed_by_peer()
        await stranger.send(request_frame(HEARTBEAT, 4))
        await refused(harness, stranger)
        # One count for all tables.
        times = harness.requests.statistics().requests
        assert {name: found.requests for name, found in times.items()} == {
            "ApiVersions": 1,
            "DescribeCluster": 1,
            "Heartbeat": 1,
        }
    assert [info.principal for info in door.seen] == ["User:alice"]


async def test_a1b_1_unknown_versions_are_answered_from_the_connections_own_table(net: Net) -> None:
    door = Doorkeeper("PLAINTEXT")
    frame = bytearray(request_frame(VERSIONS, 4, correlation_id=9))
    frame[6:8] = b"\x00\x63"
    async with connected(net, {HEARTBEAT: door.serve}, entrance=door.entrance) as (harness, client):
        await client.send(bytes(frame))
        response = await client.response(VERSIONS, 0, 9)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        await client.call(HANDSHAKE, 1)
        await client.send(bytes(frame))  # inside nobody serves ApiVersions
        await refused(harness, client)
