"""Many things that become due at once: transactions, and snapshots of producers."""

import struct
from collections.abc import Iterator
from pathlib import Path

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.records.builder import build_batch
from tests.hostile.attacks import ask, create_topic
from tests.hostile.pipeline import answers, exchange_frames
from tests.hostile.watch import watched
from tests.support.broker_process import BrokerProcess
from tests.support.produce_requests import one_batch
from tests.support.waiting import wait_until
from tests.support.wire_client import request_frame

TRANSACTIONS = 20_000
PRODUCERS = 500_000


def _transactions(port: int, state: str) -> int:
    request = ListTransactionsRequest(state_filters=[state])
    return len(ask(port, ApiKey.LIST_TRANSACTIONS, 0, request).transaction_states)


def test_20000_transactions_time_out_together(tmp_path: Path) -> None:
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000000"}
    with BrokerProcess(tmp_path, settings) as broker:
        create_topic(broker.port, "t", 8)
        _begin_transactions(broker.port)
        assert _transactions(broker.port, "Ongoing") == TRANSACTIONS
        broker.stop()
        broker.settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = "2000"
        broker.start()
        with watched(broker):
            wait_until(lambda: _transactions(broker.port, "CompleteAbort") == TRANSACTIONS, 120)


def _begin_transactions(port: int) -> None:
    find = FindCoordinatorRequest(key="id", key_type=1)
    wait_until(lambda: ask(port, ApiKey.FIND_COORDINATOR, 3, find).error_code == 0, 30)
    names = [f"id-{number}" for number in range(TRANSACTIONS)]
    begun = answers(
        port,
        ApiKey.INIT_PRODUCER_ID,
        4,
        (
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
            for name in names
        ),
    )
    assert all(answer.error_code == ErrorCode.NONE for answer in begun)
    added = answers(
        port,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        (
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=owner.producer_id,
                v3_and_below_producer_epoch=owner.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[number % 8])],
            )
            for number, (name, owner) in enumerate(zip(names, begun, strict=True))
        ),
    )
    assert len(added) == TRANSACTIONS


def _batches_of_many_producers(count: int) -> Iterator[bytes]:
    """Produce frames, each of another producer's first batch."""
    for number in range(count):
        batch = build_batch(
            [(1_700_000_000_000, None, b"v", ())],
            producer_id=number,
            producer_epoch=0,
            base_sequence=0,
        )
        yield request_frame(ApiKey.PRODUCE, 3, one_batch("many", batch, acks=1))


def test_half_a_million_producers_and_rolls(tmp_path: Path) -> None:
    """Each roll leaves a snapshot of all of them."""
    with BrokerProcess(tmp_path, {"log.segment.bytes": "1000000"}) as broker:
        create_topic(broker.port, "many")
        with watched(broker, kept=PRODUCERS * 500):
            told = exchange_frames(broker.port, _batches_of_many_producers(PRODUCERS))
        refused = struct.pack(">i", 1) + b"\x00\x04many" + struct.pack(">iih", 1, 0, 0)
        assert all(refused in frame for frame in (told[0], told[-1]))
