import pytest

from broker.api.init_producer_id import API, InitProducerIdHandler
from broker.cluster.producer_ids import ProducerIdAllocator, StoredBlocks
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.api_calls import acall
from tests.support.cluster_fakes import Cluster
from tests.support.transaction_harness import TransactionHarness

KEY = ApiKey.INIT_PRODUCER_ID


def request(transactional_id: str | None = None, **fields: int) -> object:
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60000, **fields
    )


@pytest.fixture
def handler(cluster: Cluster) -> InitProducerIdHandler:
    return InitProducerIdHandler(
        ProducerIdAllocator(StoredBlocks(cluster.store, 0)), TransactionHarness().coordinator
    )


@pytest.mark.parametrize("version", range(API.versions[1] + 1))
async def test_each_idempotent_producer_gets_its_own_id(
    handler: InitProducerIdHandler, version: int
) -> None:
    for expected in range(3):
        response = await acall(handler, KEY, version, request())
        assert response.error_code == ErrorCode.NONE
        assert (response.producer_id, response.producer_epoch) == (expected, 0)
    if version >= 3:
        # KIP-360: an idempotent producer that lost its state gets a new id.
        response = await acall(handler, KEY, version, request(producer_id=1, producer_epoch=0))
        assert (response.producer_id, response.producer_epoch) == (3, 0)


@pytest.mark.parametrize("version", range(API.versions[1] + 1))
async def test_s_txn_4_each_owner_of_a_transactional_id_gets_the_next_epoch(
    handler: InitProducerIdHandler, version: int
) -> None:
    for epoch in range(2):
        response = await acall(handler, KEY, version, request("tx"))
        assert response.error_code == ErrorCode.NONE
        assert (response.producer_id, response.producer_epoch) == (1000, epoch)
    if version >= 3:
        # KIP-360: the owner goes on after an error; nobody else may.
        response = await acall(
            handler, KEY, version, request("tx", producer_id=1000, producer_epoch=1)
        )
        assert (response.producer_id, response.producer_epoch) == (1000, 2)
        response = await acall(
            handler, KEY, version, request("tx", producer_id=1000, producer_epoch=0)
        )
        fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert response.error_code == fenced
        assert (response.producer_id, response.producer_epoch) == (-1, -1)


async def test_a_new_transactional_id_waits_for_a_block_of_ids_when_they_are_used_up(
    cluster: Cluster,
) -> None:
    """Whatever the first attempt has left would make the second one CONCURRENT_TRANSACTIONS."""
    harness = TransactionHarness()
    ids = ProducerIdAllocator(StoredBlocks(cluster.store, 0))
    harness.coordinator._new_producer_id = ids.next_id
    response = await acall(InitProducerIdHandler(ids, harness.coordinator), KEY, 4, request("tx"))
    assert (response.error_code, response.producer_id) == (ErrorCode.NONE, 0)


async def test_half_a_pair_and_an_empty_transactional_id_are_invalid(
    handler: InitProducerIdHandler,
) -> None:
    for asked in (
        request(""),
        request(producer_id=5),
        request(producer_epoch=5),
    ):
        response = await acall(handler, KEY, 4, asked)
        assert response.error_code == ErrorCode.INVALID_REQUEST
