"""Transactions by the protocol of KIP-890: a Produce request that adds its partitions, and EndTxn.

The next transaction may find the last one unfinished (CONCURRENT_TRANSACTIONS). The client then
tries again after a millisecond, where real ones wait longer.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy
from load import refuse_errors
from sides import PATIENCE_S, Side

from cases import Bench, Figures, Measure, case
from protocol.api_keys import ApiKey
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.raw_transactions import AGAIN, RawTransaction
from tests.support.wire_client import WireClient, read_response, request_frame

PRODUCE, END = 12, 5
"""Versions."""
BACK_OFF_S = 0.001


def transactions(bench: Bench, side: Side, partitions: int) -> Iterator[Measure]:
    """One transaction after another, a record of 100 bytes in each partition."""
    count = max(10, int(bench.seconds * (200 if partitions == 1 else 1000 / partitions)))
    with side.topics(1, partitions) as (topic,):
        owner = RawTransaction(topic, version=2)
        owner.begin(side.port)

        def measure() -> Figures:
            before = side.cpu_seconds()
            with WireClient(side.port, timeout_s=PATIENCE_S) as client:
                took = [one(client, owner, topic, partitions) for _ in range(count)]
            cpu = side.cpu_seconds() - before
            p50, p99 = numpy.percentile(took, [50, 99]) * 1000
            return {"p50 ms": p50, "p99 ms": p99, "CPU ms/transaction": cpu / count * 1000}

        yield measure


def one(client: WireClient, owner: RawTransaction, topic: str, partitions: int) -> float:
    """Seconds of a transaction, from the first request to the answer to the last."""
    now = int(time.time() * 1000)
    batch = build_batch(
        [(now, None, bytes(100), ())],
        producer_id=owner.producer_id,
        producer_epoch=owner.epoch,
        base_sequence=0,  # each transaction has an epoch of its own
        transactional=True,
    )
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    produce = ProduceRequest(
        transactional_id=owner.transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    end = EndTxnRequest(
        transactional_id=owner.transactional_id,
        producer_id=owner.producer_id,
        producer_epoch=owner.epoch,
        committed=True,
    )
    sent, ended = (
        request_frame(key, version, request)
        for key, version, request in (
            (ApiKey.PRODUCE, PRODUCE, produce),
            (ApiKey.END_TXN, END, end),
        )
    )
    began = time.perf_counter()
    while not _is_accepted(_ask(client, ApiKey.PRODUCE, PRODUCE, sent)):
        time.sleep(BACK_OFF_S)
    answer = _ask(client, ApiKey.END_TXN, END, ended)
    took = time.perf_counter() - began
    refuse_errors(answer)
    owner.producer_id, owner.epoch = answer.producer_id, answer.producer_epoch
    return took


def _ask(client: WireClient, key: ApiKey, version: int, frame: bytes) -> Any:
    client.send(frame)
    return read_response(key, version, client.receive_frame())[1]


def _is_accepted(answer: Any) -> bool:
    codes = {part.error_code for part in answer.responses[0].partition_responses}
    if codes & AGAIN:
        return False
    refuse_errors(answer)
    return True


CASES = {
    f"transactions/{n} partitions": case(transactions, n, quick=n == 100) for n in (1, 100, 500)
}
