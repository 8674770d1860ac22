"""Producer ids of a cluster: blocks come from the controller."""

from typing import Any

import pytest

from broker.cluster.producer_ids import ProducerIdAllocator
from broker.coordinator.allocated_blocks import AllocatedBlocks
from broker.peers.peer import PeerError
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from storage.waits import at_once
from tests.support.refusals import code_of


class Controller:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, int]] = []

    async def ask(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        self.asked.append((request.broker_id, request.broker_epoch))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        response: AllocateProducerIdsResponse = answer
        return response


def block(first: int, length: int = 3) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=length)


def test_ids_come_from_one_block_after_the_other() -> None:
    controller = Controller(block(1000), block(5000))
    ids = ProducerIdAllocator(AllocatedBlocks(controller.ask, 2, lambda: 77))
    taken = [at_once(ids.take()) for _ in range(5)]
    assert taken == [1000, 1001, 1002, 5000, 5001]
    assert controller.asked == [(2, 77), (2, 77)]


def test_ids_that_are_found_in_logs_are_others_and_change_nothing() -> None:
    controller = Controller(block(1000))
    ids = ProducerIdAllocator(AllocatedBlocks(controller.ask, 2, lambda: 77))
    ids.note_used(9_999)
    assert at_once(ids.take()) == 1000


@pytest.mark.parametrize(
    "answer",
    [
        PeerError("no controller"),
        KafkaError(ErrorCode.NOT_CONTROLLER),
        AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        block(-1),
        block(1000, 0),
    ],
)
def test_while_there_is_none_clients_ask_again(answer: Any) -> None:
    ids = ProducerIdAllocator(AllocatedBlocks(Controller(answer, block(7)).ask, 2, lambda: 77))
    assert code_of(at_once, ids.take()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert at_once(ids.take()) == 7
