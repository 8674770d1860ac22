"""Blocks of producer ids from the controller of a cluster, by AllocateProducerIds.

A source for `broker.cluster.producer_ids`. The controller records each block in the store before it
answers, so a lost answer wastes a block and no more. While there is no controller, or it refuses
(another epoch of this broker is known to it), clients get COORDINATOR_LOAD_IN_PROGRESS and ask
again. After Kafka's `RPCProducerIdManager`.
"""

import logging
from collections.abc import Callable
from typing import Final

from broker.peers.peer import PeerError
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from storage.waits import Work

logger = logging.getLogger(__name__)

AskController = Callable[[AllocateProducerIdsRequest], Work[AllocateProducerIdsResponse]]
"""Asks the controller of the moment, this broker or another. Raises PeerError and KafkaError."""


class AllocatedBlocks:
    """See `broker.cluster.producer_ids.BlockSource`."""

    believes_logs: Final = False

    def __init__(self, ask: AskController, broker_id: int, broker_epoch: Callable[[], int]) -> None:
        self._ask = ask
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch

    async def next_block(self, unused_from: int = 0) -> tuple[int, int]:
        """See `BlockSource`. Raises COORDINATOR_LOAD_IN_PROGRESS if there is none to be had now."""
        request = AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        try:
            answer = await self._ask(request)
        except (PeerError, KafkaError) as error:
            raise self._none_now(str(error)) from None
        if answer.error_code:
            raise self._none_now(ErrorCode(answer.error_code).name)
        if answer.producer_id_start < 0 or answer.producer_id_len < 1:
            raise self._none_now(
                f"a block of {answer.producer_id_len} ids from {answer.producer_id_start}"
            )
        return answer.producer_id_start, answer.producer_id_start + answer.producer_id_len - 1

    def _none_now(self, why: str) -> KafkaError:
        logger.warning("The controller gives no block of producer ids: %s", why)
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, why)
