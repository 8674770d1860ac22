"""EndTxn (key 26): commit or abort a transaction.

Versions: 0-5.

Behaviour (S-TXN-4)
* The answer goes out when the decision is durable; the markers are written afterwards. Until they
  are, further requests for the transactional id get CONCURRENT_TRANSACTIONS.
* A repeated decision that was carried out is answered NONE, the opposite one INVALID_TXN_STATE.

Version notes
* v2+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH.
* v5: each end raises the epoch, and the answer holds the producer id and epoch to go on with; a
  retry under the old epoch gets the same answer; a transaction without partitions may be aborted
  (S-TXN-7).
"""

from typing import Any, Final

from broker.api.answers import ParkedAnswer
from broker.api.producer_id_blocks import answer_with_ids
from broker.api.transaction_errors import FENCED_SINCE_OTHERS, for_version
from broker.cluster.producer_ids import ProducerIdAllocator
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from broker.request import Pending, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

VERSIONS: Final = (0, 5)

FIRST_VERSION_OF_VERSION_2: Final = 5

_Reply = EndTxnResponse | Pending


class EndTxnHandler:
    """Has the transaction coordinator commit or abort; returns the producer's next epoch."""

    def __init__(
        self, transactions: TransactionCoordinator, producer_ids: ProducerIdAllocator
    ) -> None:
        self._transactions = transactions
        self._producer_ids = producer_ids

    async def __call__(self, ctx: RequestContext, request: EndTxnRequest) -> Any:
        """The response, a `Pending`, or a coroutine if a block of ids must be recorded first."""
        return await answer_with_ids(
            self._producer_ids,
            lambda: self._answer(ctx, request),
            lambda code: self.error_response(ctx, request, code),
        )

    def _answer(self, ctx: RequestContext, request: EndTxnRequest) -> _Reply:
        version = ctx.api_version
        answer = ParkedAnswer(lambda reply: _response(version, *reply))
        self._transactions.end(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            commit=request.committed,
            version=VERSION_2 if version >= FIRST_VERSION_OF_VERSION_2 else 0,
            done=lambda code, producer_id, epoch: answer((code, producer_id, epoch)),
        )
        return answer.handed_over()

    def error_response(
        self, ctx: RequestContext, request: EndTxnRequest, code: ErrorCode
    ) -> EndTxnResponse:
        """The code and no id."""
        return _response(ctx.api_version, code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def _response(version: int, code: ErrorCode, producer_id: int, epoch: int) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=for_version(code, version, FENCED_SINCE_OTHERS),
        producer_id=producer_id,
        producer_epoch=epoch,
    )
