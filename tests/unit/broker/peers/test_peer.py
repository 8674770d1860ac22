"""A connection to another broker: versions, order, failures, back-off, large answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import trio

from broker.deadlines import Deadlines
from broker.peers.broker_peer import BACKOFF_S, MOST_BACKOFF_S, BrokerPeer
from broker.peers.peer import PeerError, UnsupportedByPeerError
from broker.peers.peers import Peers
from broker.peers.surroundings import PeerSurroundings
from broker.world.driver import Driver
from config.broker_config import BrokerConfig
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from tests.support.fake_broker import HANG_UP, SILENCE, Answer, FakeBroker, fake_broker
from tests.support.networks import MemoryNet, Net, only_in_memory

CONFIG = BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0"})


class Client:
    """This broker's side."""

    def __init__(self, net: Net, config: BrokerConfig = CONFIG) -> None:
        transport = net.client_side if isinstance(net, MemoryNet) else net.transport
        self.driver = Driver(net.workers, net.clock)
        self.clock = net.clock
        self.deadlines = Deadlines(net.clock)
        self.peers = Peers(
            config,
            PeerSurroundings(
                transport=transport,
                workers=net.workers,
                clock=net.clock,
                deadlines=self.deadlines,
                driver=self.driver,
                random=Random(1),
            ),
        )

    def to(self, endpoint: Listener) -> BrokerPeer:
        return self.peers.to(2, endpoint, "the-client")

    async def ask(
        self,
        peer: BrokerPeer,
        key: ApiKey = ApiKey.HEARTBEAT,
        request: Any = None,
        version: int | None = None,
        timeout_s: float = 5,
    ) -> Any:
        """Ask, and wait in a task."""
        request = HeartbeatRequest() if request is None else request
        work = peer.ask(key, request, version=version, timeout_s=timeout_s)
        return await self.driver.run(work)


@asynccontextmanager
async def client_on(net: Net, config: BrokerConfig = CONFIG) -> AsyncIterator[Client]:
    client = Client(net, config)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.driver.run, client.deadlines.run())
        nursery.start_soon(client.peers.run)
        yield client
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def talking(
    net: Net, answer: Answer, **more: Any
) -> AsyncIterator[tuple[Client, BrokerPeer, FakeBroker]]:
    """A client, its peer, and the broker behind that."""
    async with client_on(net) as client, fake_broker(net.transport, answer, **more) as broker:
        yield client, client.to(broker.endpoint()), broker


async def echoed(key: int, version: int, request: Any) -> Any:
    """The generation of a heartbeat as its throttle time."""
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


async def silent(key: int, version: int, request: Any) -> Any:
    return SILENCE


def answering(*replies: Any) -> Answer:
    """One reply after the other."""
    left = iter(replies)

    async def answer(key: int, version: int, request: Any) -> Any:
        return next(left)

    return answer


async def test_it_connects_when_asked_and_speaks_the_highest_version_of_both(net: Net) -> None:
    served = {ApiKey.API_VERSIONS: (0, 3), ApiKey.HEARTBEAT: (1, 3)}
    async with talking(net, echoed, versions=served) as (client, peer, broker):
        assert peer.version_of(ApiKey.HEARTBEAT) is None
        assert broker.connections == 0
        answer = await client.ask(peer, request=HeartbeatRequest(generation_id=7))
        assert answer.throttle_time_ms == 7
        assert await client.ask(peer, version=1) is not None
        assert [(key, version) for key, version, _ in broker.asked] == [
            (ApiKey.HEARTBEAT, 3),
            (ApiKey.HEARTBEAT, 1),
        ]
        assert peer.version_of(ApiKey.HEARTBEAT) == 3
        assert peer.version_of(ApiKey.FETCH) is None
        assert broker.client_ids == ["the-client"]
        assert broker.connections == 1
        with pytest.raises(UnsupportedByPeerError, match="does not serve Heartbeat version 4"):
            await client.ask(peer, version=4)
        with pytest.raises(UnsupportedByPeerError, match=r"does not serve Metadata$"):
            await client.ask(peer, ApiKey.METADATA, MetadataRequest())


async def test_a_peer_that_only_asks_for_versions_sends_nothing_else(net: Net) -> None:
    async with talking(net, echoed) as (client, peer, broker):
        await client.driver.run(peer.ready(timeout_s=5))
        assert peer.version_of(ApiKey.LEADER_AND_ISR) == 7
        assert broker.asked == []


async def test_many_are_under_way_at_once_in_the_order_of_asking(net: Net) -> None:
    may_answer = trio.Event()

    async def late(key: int, version: int, request: Any) -> Any:
        await may_answer.wait()
        return await echoed(key, version, request)

    answers: dict[int, int] = {}

    async with talking(net, late) as (client, peer, broker):

        async def one(number: int) -> None:
            answer = await client.ask(peer, request=HeartbeatRequest(generation_id=number))
            answers[number] = answer.throttle_time_ms

        await client.driver.run(peer.ready(timeout_s=5))
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(one, number)
            await net.settle()
            may_answer.set()
        assert answers == {number: number for number in range(50)}
        assert broker.connections == 1


async def test_a_connection_that_ends_fails_what_is_under_way_and_the_next_one_connects(
    net: Net,
) -> None:
    answer = answering(HANG_UP, HeartbeatResponse())
    async with talking(net, answer) as (client, peer, broker):
        with pytest.raises(PeerError, match=r"broker 2 at 127.0.0.1:\d+: "):
            await client.ask(peer)
        assert await client.ask(peer) is not None
        assert broker.connections == 2
        [(key, traffic)] = client.peers.traffic.items()
        assert key == ("the-client", 2)
        assert (traffic.connected, traffic.connections, traffic.requests) == (1, 2, 2)
        assert traffic.bytes_out > traffic.bytes_in > 0
        peer.close()
        await net.settle()
        assert traffic.connected == 0


async def test_no_answer_in_time_ends_the_connection(net: Net) -> None:
    answer = answering(SILENCE, SILENCE, HeartbeatResponse())
    failures: list[str] = []

    async with talking(net, answer) as (client, peer, broker):

        async def one(timeout_s: float) -> None:
            with pytest.raises(PeerError) as caught:
                await client.ask(peer, timeout_s=timeout_s)
            failures.append(str(caught.value).partition(": ")[2])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 0.2)
            nursery.start_soon(one, 4)
        assert failures == ["no answer to Heartbeat within 0.2 s"] * 2
        assert await client.ask(peer) is not None
        assert broker.connections == 2


@only_in_memory
async def test_failed_attempts_are_further_and_further_apart(net: Net) -> None:
    async with client_on(net) as client:
        peer = client.to(Listener(name="P", host="127.0.0.1", port=9, protocol="PLAINTEXT"))
        times = []
        for _ in range(8):
            with pytest.raises(PeerError, match="Connection refused"):
                await client.ask(peer, timeout_s=10)
            times.append(client.clock.monotonic())
        pauses = [after - before for before, after in pairwise(times)]
        wanted = [min(BACKOFF_S * 2**n, MOST_BACKOFF_S) for n in range(7)]
        for pause, expected in zip(pauses, wanted, strict=True):
            assert 0.8 * expected <= pause <= 1.2 * expected + 1e-9
        with pytest.raises(PeerError, match=r"no connection within 0.1 s"):
            await client.ask(peer, timeout_s=0.1)
        async with fake_broker(net.transport, echoed, port=9):
            assert await client.ask(peer) is not None


@only_in_memory
async def test_a_peer_that_says_nothing_is_given_up_after_the_setup_timeout(net: Net) -> None:
    config = BrokerConfig.parse(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "socket.connection.setup.timeout.ms": "300"}
    )
    async with client_on(net, config) as client, fake_broker(net.transport, echoed) as broker:
        net.server_side.freeze()
        began = client.clock.monotonic()
        with pytest.raises(PeerError, match=r"no connection within 0.3 s"):
            await client.ask(client.to(broker.endpoint()))
        assert client.clock.monotonic() - began == pytest.approx(0.3)


async def test_records_of_a_large_answer_are_slices_of_one_buffer(net: Net) -> None:
    records = bytes(range(256)) * 20_000

    async def answer(key: int, version: int, request: Any) -> Any:
        partitions = [PartitionData(partition_index=n, records=records) for n in range(2)]
        return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])

    async with talking(net, answer) as (client, peer, _):
        kept = []
        for _ in range(3):
            response = await client.ask(peer, ApiKey.FETCH, FetchRequest())
            kept.append(response)
        for response in kept:
            first, second = (one.records for one in response.responses[0].partitions)
            assert first == second == records
            assert isinstance(first, memoryview)
            assert first.obj is second.obj
        assert len({id(one.responses[0].partitions[0].records.obj) for one in kept}) == 3


async def test_answers_of_many_elements_are_parsed_in_turns(net: Net) -> None:
    async def answer(key: int, version: int, request: Any) -> Any:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h") for n in range(5_000)]
        )

    async with talking(net, answer) as (client, peer, _):
        response = await client.ask(peer, ApiKey.METADATA, MetadataRequest())
        assert [one.node_id for one in response.brokers] == list(range(5_000))


async def test_a_large_request_is_built_in_turns_and_stays_before_what_was_asked_after_it(
    net: Net,
) -> None:
    async def answer(key: int, version: int, request: Any) -> Any:
        return UpdateMetadataResponse() if key == ApiKey.UPDATE_METADATA else HeartbeatResponse()

    large = UpdateMetadataRequest(
        topic_states=[
            UpdateMetadataTopicState(
                topic_name="t",
                partition_states=[
                    UpdateMetadataPartitionState(partition_index=n, replicas=[1, 2, 3])
                    for n in range(20_000)
                ],
            )
        ]
    )
    async with talking(net, answer) as (client, peer, broker):
        await client.driver.run(peer.ready(timeout_s=5))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.ask, peer, ApiKey.UPDATE_METADATA, large)
            await net.settle()
            nursery.start_soon(client.ask, peer)
        assert [key for key, _, _ in broker.asked] == [
            ApiKey.UPDATE_METADATA,
            ApiKey.HEARTBEAT,
        ]
        states = broker.asked[0][2].topic_states[0].partition_states
        assert [one.partition_index for one in states] == list(range(20_000))


@pytest.mark.parametrize("nonsense", [b"", b"\0\0", bytes(500)])
async def test_an_answer_that_is_none_is_an_error_of_that_request(
    net: Net, nonsense: bytes
) -> None:
    async with talking(net, answering(nonsense)) as (client, peer, _):
        with pytest.raises(PeerError, match="Heartbeat"):
            await client.ask(peer)


async def test_a_closed_peer_refuses_and_fails_what_is_under_way(net: Net) -> None:
    async with talking(net, silent) as (client, peer, broker):

        async def one() -> None:
            with pytest.raises(PeerError, match="needs the connection no more"):
                await client.ask(peer)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            await net.settle()
            peer.close()
        with pytest.raises(PeerError, match="needs the connection no more"):
            await client.ask(peer)
        assert broker.connections == 1


async def test_an_end_of_this_broker_fails_what_is_asked(net: Net) -> None:
    client = Client(net)
    async with fake_broker(net.transport, silent) as broker:
        peer = client.to(broker.endpoint())
        outcomes: list[str] = []

        async def one() -> None:
            with pytest.raises(PeerError, match="this broker stops"):
                await client.ask(peer)
            outcomes.append("failed")

        async with trio.open_nursery() as asking, trio.open_nursery() as nursery:
            asking.start_soon(one)  # before it runs
            await net.settle()
            nursery.start_soon(client.peers.run)
            while not broker.asked:
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
        await one()
        assert outcomes == ["failed", "failed"]


async def test_what_is_asked_in_any_turn_of_the_end_is_told_of_it(net: Net) -> None:
    client = Client(net)
    async with fake_broker(net.transport, silent) as broker:
        outcomes: list[BaseException] = []

        async def one() -> None:
            try:
                await client.ask(client.to(broker.endpoint()))
            except BaseException as error:  # noqa: BLE001 - judged below
                outcomes.append(error)

        async with trio.open_nursery() as asking, trio.open_nursery() as nursery:
            nursery.start_soon(client.peers.run)
            await net.settle()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                for _ in range(10):
                    asking.start_soon(one)
                    await trio.lowlevel.checkpoint()
        assert len(outcomes) == 10
        assert all(isinstance(error, PeerError) for error in outcomes), outcomes


async def test_work_that_is_ended_while_it_waits_leaves_the_connection_as_it_is(net: Net) -> None:
    async with talking(net, echoed) as (client, peer, broker):
        await client.driver.run(peer.ready(timeout_s=5))
        with trio.move_on_after(0):
            await client.ask(peer, request=HeartbeatRequest(generation_id=1))
        answer = await client.ask(peer, request=HeartbeatRequest(generation_id=2))
        assert answer.throttle_time_ms == 2
        assert broker.connections == 1
