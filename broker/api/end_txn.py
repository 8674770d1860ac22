"""EndTxn (key 26): commit or abort a transaction.

Behaviour (S-TXN-4)
* The answer goes out when the decision is durable; the markers are written afterwards. Until they
  are, further requests for the transactional id get CONCURRENT_TRANSACTIONS.
* A repeated decision that was carried out is answered NONE, the opposite one INVALID_TXN_STATE.

Version notes
* v2+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH.
* v5: each end raises the epoch, and the answer holds the producer id and epoch of the next
  transaction; a retry under the old epoch gets the same answer; a transaction without partitions
  may be aborted (S-TXN-7).
"""

from functools import partial
from typing import Final

from broker.api_facts import Api
from broker.cluster.producer_ids import ProducerIdAllocator, decide_with_ids
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.errors import FENCED_SINCE_OTHERS, for_version
from broker.coordinator.transaction.shard import Ownership
from broker.coordinator.transaction.state import VERSION_2
from broker.request import RequestContext
from broker.security.access import WRITE_TRANSACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

API: Final = Api(
    key=ApiKey.END_TXN,
    versions=(0, 5),
    # KafkaApis.handleEndTxnRequest
    accesses=(WRITE_TRANSACTION,),
    make=lambda s: EndTxnHandler(s.transaction_coordinator, s.producer_ids),
)

FIRST_VERSION_OF_VERSION_2: Final = 5


class EndTxnHandler:
    """Has the transaction coordinator commit or abort; returns the producer's next epoch."""

    def __init__(
        self, transactions: TransactionCoordinator, producer_ids: ProducerIdAllocator
    ) -> None:
        self._transactions = transactions
        self._producer_ids = producer_ids

    async def __call__(self, ctx: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
        """The response, when the decision is durable."""
        ctx.released = True
        owned = await decide_with_ids(
            self._producer_ids,
            partial(
                self._transactions.end,
                request.transactional_id,
                Producer(request.producer_id, request.producer_epoch),
                commit=request.committed,
                version=VERSION_2 if ctx.api_version >= FIRST_VERSION_OF_VERSION_2 else 0,
            ),
        )
        return _response(ctx.api_version, owned)

    def error_response(
        self, ctx: RequestContext, request: EndTxnRequest, code: ErrorCode
    ) -> EndTxnResponse:
        """The code and no id."""
        return _response(ctx.api_version, Ownership(code))


def _response(version: int, owned: Ownership) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=for_version(owned.code, version, FENCED_SINCE_OTHERS),
        producer_id=owned.producer_id,
        producer_epoch=owned.producer_epoch,
    )
