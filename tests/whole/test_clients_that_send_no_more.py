"""The broker serves all requests of a client that has sent the end of its stream (S-NET-1).

Kafka reads a connection to its end. A client may write with acks=0 and close at once, or close its
sending half and wait for the replies; only a reset says that nobody listens.
"""

from typing import Final

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.types import LATEST_TIMESTAMP
from tests.support.heavy_batches import odd_sizes
from tests.support.produce_requests import one_batch
from tests.support.read_requests import one_fetch, one_lookup
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker, whole_broker

NOW_MS: Final = 1_700_000_000_000
HEAVY_RECORDS: Final = 21_000
PRODUCE, FETCH = 9, 11


def batch_of(size: int) -> bytes:
    return build_batch([(NOW_MS, None, bytes(size), ())])


async def log_end(broker: WholeBroker) -> int:
    client = broker.client()
    answer = await client.call(ApiKey.LIST_OFFSETS, 5, one_lookup("t", LATEST_TIMESTAMP))
    client.close()
    offset: int = answer.topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("acks", [0, 1])
def test_batches_sent_before_a_close_are_appended_by_a_muted_broker(acks: int) -> None:
    """80 clients send at once more than `queued.max.request.bytes`, and close."""

    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        request = one_batch("t", batch_of(80_000), acks=acks)

        async def send_and_close() -> None:
            client = broker.client()
            await client.send_only(ApiKey.PRODUCE, PRODUCE, request)
            client.close()

        async with broker.together() as nursery:
            for _ in range(80):
                nursery.start_soon(send_and_close)
        await broker.clock.sleep(60)
        assert await log_end(broker) == 80
        memory = broker.server.components.socket_server.statistics().memory
        assert memory is not None
        assert (memory.used, memory.muted) == (0, 0)

    limits = {"queued__max__request__bytes": "100000", "socket__request__max__bytes": "100000"}
    run_whole_broker(scenario, SlowWorkers(3), **limits)


def test_a_heavy_batch_without_acknowledgement_and_the_batches_behind_it_are_appended() -> None:
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        client = broker.client()
        for batch in (odd_sizes(HEAVY_RECORDS, NOW_MS), *[batch_of(10)] * 20):
            await client.send_only(ApiKey.PRODUCE, PRODUCE, one_batch("t", batch, acks=0))
        client.close()
        await broker.clock.sleep(60)
        assert await log_end(broker) == HEAVY_RECORDS + 20

    run_whole_broker(scenario, SlowWorkers(4))


def test_a_heavy_batch_of_a_client_that_sends_no_more_is_acknowledged() -> None:
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        client = broker.client()
        await client.send_only(
            ApiKey.PRODUCE, PRODUCE, one_batch("t", odd_sizes(HEAVY_RECORDS, NOW_MS), acks=1)
        )
        client.send_no_more()
        answer = await client.receive(ApiKey.PRODUCE, PRODUCE)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    run_whole_broker(scenario, SlowWorkers(5))


@whole_broker()
async def test_requests_behind_a_parked_one_are_carried_out(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    fetch = one_fetch("t", size=1_000, max_wait_ms=5_000, max_bytes=1_000)
    client = broker.client()
    await client.send_only(ApiKey.FETCH, FETCH, fetch)
    await broker.clock.sleep(1)
    await client.send_only(ApiKey.PRODUCE, PRODUCE, one_batch("t", batch_of(10), acks=1))
    client.send_no_more()
    waiting = await client.receive(ApiKey.FETCH, FETCH)
    assert not waiting.responses[0].partitions[0].records
    answer = await client.receive(ApiKey.PRODUCE, PRODUCE)
    assert answer.responses[0].partition_responses[0].base_offset == 0
    assert await log_end(broker) == 1
