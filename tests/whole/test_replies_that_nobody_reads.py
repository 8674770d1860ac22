"""A client that reads no reply holds up nobody but itself (S-NET-1).

The client sends a request with a reply that the connection has no room for, and behind it one whose
work takes locks or places that others need. That work is done although the first reply does not
leave.
"""

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from tests.support.held import Held
from tests.support.memory_client import MemoryClient
from tests.support.memory_transport import BUFFER_BYTES
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker
from tests.support.wire_client import request_frame
from tests.whole.kinds_of_requests import BATCHES, KINDS, SETTINGS, produce

METADATA = 8
UNREAD_BYTES = 1_000
"""The room for replies that the client has not read: less than a reply with all topics."""
CLIENTS = 3
"""A number at which the work of one client waits for that of another."""


async def ask(client: MemoryClient, kind: str) -> None:
    """Send a Metadata for all topics, and the request of this kind together with it."""
    await client.send_only(ApiKey.METADATA, METADATA, MetadataRequest(topics=None))
    await client.send_only(*KINDS[kind]())


def comes_at_once(kind: str) -> bool:
    """Whether a request is small enough to come together with the one before."""
    return len(request_frame(*KINDS[kind]())) < BUFFER_BYTES


@pytest.mark.parametrize("kind", [*filter(comes_at_once, KINDS)])
def test_others_are_served_beside_a_client_that_reads_no_reply(kind: str) -> None:
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        await broker.create_topic("other", 40)
        before = Held()
        clients = [broker.client() for _ in range(CLIENTS)]
        for client in clients:
            await ask(client, kind)
        await broker.clock.sleep(1)
        other = broker.client()
        for batch in BATCHES:
            answer = await other.call(*produce(batch))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        key, version, _ = KINDS[kind]()
        for client in clients:
            everything = await client.receive(ApiKey.METADATA, METADATA)
            assert {topic.name for topic in everything.topics} >= {"t", "other"}
            if "acks=0" not in kind:
                await client.receive(key, version)
            client.close()
        other.close()
        await broker.clock.sleep(60)
        assert not before.changes()

    settings = {**SETTINGS, "socket.send.buffer.bytes": str(UNREAD_BYTES)}
    run_whole_broker(scenario, SlowWorkers(1), **settings)
