"""Clients of every kind write to one partition at once, and each is answered (S-NET-1).

An append in a thread holds its partition's lock, and other appends queue on it. If handler workers
waited for the lock, the work that holds it would find no free worker as soon as all of them waited,
and no client would get an answer any more.
"""

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.heavy_batches import of_each_kind
from tests.support.memory_client import MemoryClient
from tests.support.produce_requests import one_batch
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker

PRODUCE = 9
TURNS = 4
NOW_MS = 1_700_000_000_000

Batches = dict[str, bytes]


@pytest.fixture(scope="module")
def batches() -> Batches:
    return of_each_kind(NOW_MS)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("clients", [1, 2, 7, 8, 9, 20])
def test_each_kind_of_batch_is_appended_beside_the_others(
    clients: int, workers: int, batches: Batches
) -> None:
    answered: dict[str, int] = dict.fromkeys(batches, 0)

    async def produce(client: MemoryClient, kind: str) -> None:
        for _ in range(TURNS):
            request = one_batch("t", batches[kind], acks=1)
            answer = await client.call(ApiKey.PRODUCE, PRODUCE, request)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            answered[kind] += 1

    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t", max__message__bytes="2000000")
        async with broker.together() as nursery:
            for _ in range(clients):
                for kind in batches:
                    nursery.start_soon(produce, broker.client(), kind)

    seed = 100 * clients + workers
    run_whole_broker(scenario, SlowWorkers(seed), num__io__threads=str(workers))
    assert answered == dict.fromkeys(batches, clients * TURNS)
