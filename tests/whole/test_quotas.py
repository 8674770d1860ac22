"""Quotas over a whole broker, in virtual time: work takes none of it, so only throttling does."""

import contextlib
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio

from broker.network.activity import State
from broker.world.streams import send_all
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import build_batch
from tests.support.broker_configs import BROKER, alter
from tests.support.memory_client import HOST, PORT, MemoryClient, receive_frame
from tests.support.memory_transport import MemoryTransport
from tests.support.produce_requests import one_batch
from tests.support.quota_calls import described, description
from tests.support.read_requests import one_fetch
from tests.support.topic_requests import creation, growth
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.support.wire_client import request_frame
from tests.whole.plain import set_quota

RATE = 10_000
"""Bytes per second."""
BURST_S = 10
"""The burst that a client may take after a pause, in seconds of its quota."""
BATCH = 200


async def make_topic(broker: WholeBroker) -> None:
    await broker.create_topic("t", retention__ms="-1")


def production(size: int = BATCH, acks: int = -1) -> ProduceRequest:
    batch = build_batch([(0, None, b"x" * size, ())])
    return one_batch("t", batch, acks=acks)


async def produce(client: MemoryClient, size: int = BATCH) -> int:
    """Produce a batch; return the throttle time of the answer."""
    answer = await client.call(ApiKey.PRODUCE, 9, production(size))
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)


async def fetch(client: MemoryClient, offset: int = 0, **fields: Any) -> Any:
    return await client.call(ApiKey.FETCH, 11, one_fetch("t", offset, **fields))


def records(answer: Any) -> int:
    """Return the bytes of records in an answer."""
    return sum(
        len(bytes(part.records or b"")) for topic in answer.responses for part in topic.partitions
    )


Take = Callable[[MemoryClient], Awaitable[int]]


async def taken(
    broker: WholeBroker, take: Take, *, pause_s: float = 0.0, over_s: float = 30, count: int = 10
) -> list[float]:
    """Return the rate of each of `count` clients, over a time after the burst is spent.

    They pause between two requests.
    """
    rates: list[float] = []

    async def one(number: int) -> None:
        client, total, clock = broker.client(f"c{number}"), 0, broker.clock
        began = since = clock.monotonic()
        while clock.monotonic() < since + over_s:
            total += await take(client)
            await clock.sleep(pause_s)
            if since == began and clock.monotonic() >= began + 60:
                since, total = clock.monotonic(), 0
        rates.append(total / (clock.monotonic() - since))

    async with broker.together() as clients:
        for number in range(count):
            clients.start_soon(one, number)
    assert len(rates) == count
    return rates


async def take_produced(client: MemoryClient, size: int = BATCH) -> int:
    request = production(size)
    answer = await client.call(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return len(request_frame(ApiKey.PRODUCE, 9, request, client_id=client.client_id)) - 4


async def take_fetched(client: MemoryClient) -> int:
    answer = await fetch(client, max_bytes=500)
    return len(FetchResponse.codec(11).build(answer)) + 4 if records(answer) else 0


KINDS = [("producer_byte_rate", take_produced), ("consumer_byte_rate", take_fetched)]


async def held_at_its_rate(broker: WholeBroker, key: str, take: Take, haste: float) -> None:
    """Ten clients take `haste` times the rate; with 0, what they can."""
    await make_topic(broker)
    for _ in range(30):
        await produce(broker.client())
    await set_quota(broker, client_id=None, **{key: RATE})
    size = await take(broker.client("probe"))
    rates = await taken(broker, take, pause_s=size / (haste * RATE) if haste else 0)
    assert all(abs(rate - RATE) < 0.05 * RATE for rate in rates), rates


@pytest.mark.parametrize(("key", "take"), KINDS)
@whole_broker()
async def test_s_qta_3_ten_clients_that_take_a_fifth_more_are_held_at_their_rate(
    broker: WholeBroker, key: str, take: Take
) -> None:
    await held_at_its_rate(broker, key, take, 1.2)


@pytest.mark.parametrize(("key", "take"), KINDS)
@whole_broker(quota__window__num="2")
async def test_s_qta_3_clients_that_take_what_they_can_are_held_at_their_rate_by_two_windows(
    broker: WholeBroker, key: str, take: Take
) -> None:
    await held_at_its_rate(broker, key, take, 0)


@whole_broker()
async def test_s_qta_3_with_kafkas_windows_they_swing_and_are_held_over_minutes(
    broker: WholeBroker,
) -> None:
    """Clients take ten seconds' worth at once, and again when the windows have forgotten it."""
    await make_topic(broker)
    await set_quota(broker, client_id=None, producer_byte_rate=RATE)
    rates = await taken(broker, partial(take_produced, size=1_500), over_s=220, count=2)
    assert all(abs(rate - RATE) < 0.11 * RATE for rate in rates), rates


@whole_broker(quota__window__num="3")
async def test_s_qta_3_ten_clients_of_a_user_share_its_rate(broker: WholeBroker) -> None:
    await make_topic(broker)
    await set_quota(broker, user="ANONYMOUS", producer_byte_rate=RATE)
    rates = await taken(broker, take_produced, pause_s=0.01)
    assert abs(sum(rates) - RATE) < 0.1 * RATE, rates


@whole_broker()
async def test_s_qta_3_a_producer_that_wants_no_answer_is_held_back_too(
    broker: WholeBroker,
) -> None:
    await make_topic(broker)
    await set_quota(broker, client_id="c", producer_byte_rate=RATE)
    client, clock = broker.client("c"), broker.clock
    began = clock.monotonic()
    for _ in range(3):  # all are on their way before the first is handled
        await client.send_only(ApiKey.PRODUCE, 9, production(11 * RATE, acks=0))
    client.close()  # batches that were sent before count
    watcher = broker.client("watcher")
    seen = []
    while clock.monotonic() < began + 60:
        (log,) = broker.server.log_manager.all_logs()
        if log.log_end_offset > len(seen):
            seen.append(clock.monotonic() - began)
        await clock.sleep(0.5)
    assert len(seen) == 3
    assert seen[0] < 1 <= seen[1] < seen[2]
    assert await produce(watcher) == 0


@whole_broker()
async def test_s_qta_3_a_throttled_fetch_has_no_data_and_leaves_its_session_alone(
    broker: WholeBroker,
) -> None:
    await make_topic(broker)
    for _ in range(8):
        await produce(broker.client(), 20_000)
    await set_quota(broker, client_id="c", consumer_byte_rate=20_000)
    client, clock = broker.client("c"), broker.clock
    full = await fetch(client, session_id=0, session_epoch=0)
    assert records(full) > 7 * 20_000
    assert full.throttle_time_ms == 0
    assert full.session_id > 0
    began = clock.monotonic()
    empty = await fetch(client, session_id=full.session_id, session_epoch=1)
    assert clock.monotonic() == began
    assert (empty.session_id, list(empty.responses), empty.error_code) == (full.session_id, [], 0)
    assert 5_000 < empty.throttle_time_ms < 12_000
    again = await fetch(client, session_id=full.session_id, session_epoch=2)
    assert clock.monotonic() == pytest.approx(began + empty.throttle_time_ms / 1000, abs=0.002)
    # Refused bytes were not counted.
    assert records(again) == 0 or again.throttle_time_ms == 0
    assert again.throttle_time_ms < empty.throttle_time_ms


@whole_broker()
async def test_s_qta_3_a_consumer_gets_no_more_than_its_quota_lets_through(
    broker: WholeBroker,
) -> None:
    """Otherwise it would be throttled each time, and never get a record."""
    await make_topic(broker)
    for _ in range(8):
        await produce(broker.client(), 20_000)
    await set_quota(broker, client_id="c", consumer_byte_rate=5_000)
    client = broker.client("c")
    answer = await fetch(client)
    # The bytes around the records count, too: Kafka throttles its client for some milliseconds.
    assert answer.throttle_time_ms < 20
    answer = await fetch(client)
    assert records(answer) == 5_000 * BURST_S


@whole_broker()
async def test_s_qta_6_a_change_holds_at_once_for_open_connections(broker: WholeBroker) -> None:
    await make_topic(broker)
    client = broker.client("c")
    assert await produce(client, 15 * RATE) == 0
    await set_quota(broker, client_id="c", producer_byte_rate=RATE)
    assert await produce(client, 15 * RATE) > 0
    await set_quota(broker, client_id="c", producer_byte_rate=100 * RATE)
    assert await produce(client, 15 * RATE) == 0
    await set_quota(broker, client_id="c", removed="producer_byte_rate")
    assert await produce(client, 90 * RATE) == 0
    assert broker.server.components.quotas.charging is None


@whole_broker()
async def test_s_qta_8_quotas_survive_a_restart(broker: WholeBroker) -> None:
    await set_quota(
        broker, user="ann", client_id=None, producer_byte_rate=5, request_percentage=1.5
    )
    await set_quota(broker, client_id="a/b <default>", consumer_byte_rate=7)
    await set_quota(broker, ip="10.0.0.1", connection_creation_rate=3)
    await broker.restart()
    answer = await broker.client().call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, description())
    assert described(answer) == {
        (("client-id", None), ("user", "ann")): {
            "producer_byte_rate": 5,
            "request_percentage": 1.5,
        },
        (("client-id", "a/b <default>"),): {"consumer_byte_rate": 7},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 3},
    }
    assert broker.server.components.quotas.charging is not None


# ---- changes of topics


@whole_broker()
async def test_s_qta_4_changes_are_refused_while_the_bucket_is_overdrawn(
    broker: WholeBroker,
) -> None:
    await set_quota(broker, client_id="c", controller_mutation_rate=1)
    client, clock = broker.client("c"), broker.clock
    began = clock.monotonic()
    answer = await client.call(ApiKey.CREATE_TOPICS, 6, creation("a", "b", "c", partitions=10))
    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert [topic.error_code for topic in answer.topics] == [0, 0, refused]
    assert answer.throttle_time_ms == 9_000  # 11 credits, 20 spent
    assert clock.monotonic() == began
    answer = await client.call(ApiKey.CREATE_PARTITIONS, 3, growth("a", 15))
    assert clock.monotonic() == pytest.approx(began + 9, abs=0.002)
    assert (answer.results[0].error_code, answer.throttle_time_ms) == (0, 0)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")])
    answer = await client.call(ApiKey.DELETE_TOPICS, 6, deletion)
    assert (answer.responses[0].error_code, answer.throttle_time_ms) == (refused, 5_000)
    assert await broker.client("other").call(ApiKey.CREATE_TOPICS, 6, creation("d"))


@whole_broker()
async def test_s_qta_4_older_clients_are_served_and_throttled(broker: WholeBroker) -> None:
    await set_quota(broker, client_id="c", controller_mutation_rate=1)
    client, clock = broker.client("c"), broker.clock
    began = clock.monotonic()
    answer = await client.call(ApiKey.CREATE_TOPICS, 5, creation("a", "b", "c", partitions=10))
    assert [topic.error_code for topic in answer.topics] == [0, 0, 0]
    assert answer.throttle_time_ms == 19_000
    await client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
    assert clock.monotonic() == pytest.approx(began + 19, abs=0.002)


@whole_broker(num__partitions="12")
async def test_s_qta_4_topics_are_not_made_by_metadata_when_the_bucket_is_overdrawn(
    broker: WholeBroker,
) -> None:
    await set_quota(broker, client_id="c", controller_mutation_rate=1)
    client = broker.client("c")
    codes = []
    for name in ("a", "b"):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        answer = await client.call(ApiKey.METADATA, 9, request)
        assert answer.throttle_time_ms == 0
        codes.append(answer.topics[0].error_code)
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


# ---- throttled connections


@whole_broker()
async def test_throttled_connections_cost_no_task_and_no_buffer(broker: WholeBroker) -> None:
    await make_topic(broker)
    await set_quota(broker, user="ANONYMOUS", producer_byte_rate=1_000)
    clients = [broker.client(f"c{number}") for number in range(50)]
    for client in clients:
        await produce(client, 100)
    server = broker.server.components.socket_server
    tasks = trio.lowlevel.current_statistics().tasks_living
    before = server.statistics().buffers.bytes_in_use
    for client in clients:
        await produce(client, 15_000)
    charging = broker.server.components.quotas.charging
    assert charging is not None
    assert charging.produce.throttled == 50
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert server.statistics().buffers.bytes_in_use <= before
    for client in clients:
        client.close()
    await broker.clock.sleep(3_600)
    assert charging.produce.throttled == 0


@whole_broker(connections__max__idle__ms="20000")
async def test_a_throttle_longer_than_the_idle_time_ends_the_connection_as_in_kafka(
    broker: WholeBroker,
) -> None:
    await make_topic(broker)
    await set_quota(broker, client_id="c", producer_byte_rate=RATE)
    client = broker.client("c")
    assert await produce(client, 15 * RATE) < 20_000
    await client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))  # it is still there
    assert await produce(client, 90 * RATE) > 40_000
    with pytest.raises(OSError):
        await client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))


@whole_broker()
async def test_a_stop_does_not_wait_for_throttled_clients(broker: WholeBroker) -> None:
    await make_topic(broker)
    await set_quota(broker, client_id="c", producer_byte_rate=RATE)
    client = broker.client("c")
    assert await produce(client, 90 * RATE) > 60_000
    states = [one.state for one in broker.server.components.socket_server._connections]
    assert states.count(State.THROTTLED) == 1
    began = broker.clock.monotonic()
    assert await broker.stop()
    assert broker.clock.monotonic() < began + 5


# ---- the rate of new connections


async def connected_after(broker: WholeBroker, count: int, host: str = "127.0.0.1") -> list[float]:
    """Make connections at once; return the seconds until each is answered, inf if it is closed."""
    began, answered = broker.clock.monotonic(), [math.inf] * count
    transport = MemoryTransport(broker.network)
    asked = request_frame(ApiKey.API_VERSIONS, 0)

    async def one(number: int) -> None:
        stream = transport.connect(HOST, PORT, from_host=host)
        await send_all(stream, asked)
        with contextlib.suppress(OSError):
            await receive_frame(stream)
            answered[number] = broker.clock.monotonic() - began
        stream.close()

    async with broker.together() as clients:
        for number in range(count):
            clients.start_soon(one, number)
    return sorted(answered)


@whole_broker(max__connection__creation__rate="5", quota__window__num="3")
async def test_s_qta_5_connections_beyond_the_brokers_rate_wait_their_turn(
    broker: WholeBroker,
) -> None:
    after = await connected_after(broker, 40)
    assert after[-1] < math.inf
    assert after[9] == 0  # two seconds' worth
    assert 4.5 < after[-1] < 9  # the other thirty at five a second, a little faster for the windows


@whole_broker(quota__window__num="3")
async def test_s_qta_5_connections_beyond_the_rate_of_their_address_are_closed(
    broker: WholeBroker,
) -> None:
    await set_quota(broker, ip="10.0.0.1", connection_creation_rate=2)
    began = broker.clock.monotonic()
    after = await connected_after(broker, 10, "10.0.0.1")
    assert after == [0] * 4 + [math.inf] * 6
    assert 0.2 < broker.clock.monotonic() - began <= 1.0  # closed after a while, at most a window
    assert await connected_after(broker, 10, "10.0.0.2") == [0] * 10
    await set_quota(broker, ip="10.0.0.1", removed="connection_creation_rate")
    assert await connected_after(broker, 10, "10.0.0.1") == [0] * 10


@pytest.mark.parametrize(
    ("of", "key"),
    [
        ("", "max.connection.creation.rate"),
        ("1", "listener.name.plaintext.max.connection.creation.rate"),
    ],
)
@whole_broker()
async def test_the_rate_of_connections_changes_while_the_broker_runs(
    broker: WholeBroker, of: str, key: str
) -> None:
    assert await connected_after(broker, 50) == [0] * 50
    assert broker.server.components.quotas.accepting is None
    assert await alter(broker, BROKER, of, {key: "1"}) == (0, "")
    assert (await connected_after(broker, 20))[-1] > 5


@whole_broker()
async def test_a_stop_closes_connections_that_wait_to_be_closed(broker: WholeBroker) -> None:
    await set_quota(broker, ip=None, connection_creation_rate=1)
    transport = MemoryTransport(broker.network)
    streams = [transport.connect(HOST, PORT, from_host="10.0.0.1") for _ in range(30)]
    await broker.clock.sleep(0.1)
    server = broker.server.components.socket_server
    assert len(server._late_closes) == 20
    assert await broker.stop()
    assert len(server._late_closes) == 0
    for stream in streams:
        stream.close()
