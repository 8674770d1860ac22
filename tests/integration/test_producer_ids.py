"""Producer ids never come twice: not after kill -9, nor with a metadata store older than the logs.

An id that came twice would make the first batches of a new producer duplicates of another's, to be
dropped with a good answer (S-IDEM-1). Apache Kafka keeps no such store, so it is not tested here.
"""

import shutil
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.records.builder import build_batch
from tests.integration.test_transactions_wire import Peer, patiently
from tests.support.broker_process import BrokerProcess
from tests.support.produce_requests import one_batch
from tests.support.topics import make_topic
from tests.support.wire_client import WireClient


def new_id(broker: BrokerProcess) -> int:
    """Return the id of a new idempotent producer, which has written one batch with it."""
    wire = WireClient(broker.port)
    try:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        response = wire.call(ApiKey.INIT_PRODUCER_ID, 4, request)
        assert (response.error_code, response.producer_epoch) == (0, 0)
        producer_id = int(response.producer_id)
        batch = build_batch(
            [(1, None, b"%d" % producer_id, ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
        produce = one_batch("t", batch)
        codes = []

        def ask() -> int:
            [topic] = wire.call(ApiKey.PRODUCE, 9, produce).responses
            [partition] = topic.partition_responses
            codes.append((partition.error_code, partition.base_offset))
            return int(partition.error_code)

        assert patiently(ask) == 0
        return producer_id
    finally:
        wire.close()


def transactional_id(broker: BrokerProcess, name: str) -> int:
    peer = Peer(broker.bootstrap, name)
    try:
        peer.init()
        return peer.producer_id
    finally:
        peer.wire.close()


@pytest.mark.parametrize("fate", ["kept", "older", "lost", "lost twice"])
def test_s_idem_1_and_s_txn_6_producer_ids_never_repeat(tmp_path: Path, fate: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        make_topic(broker.bootstrap, "t")
        seen = [new_id(broker), transactional_id(broker, "first")]
        broker.stop()
        [store] = [one for one in broker.log_dir.iterdir() if "metadata" in one.name]
        older = tmp_path / "older"
        shutil.copy(store, older)
        broker.start()
        seen += [new_id(broker), new_id(broker), transactional_id(broker, "a")]
        for turn in range(2 if fate == "lost twice" else 1):
            broker.kill()
            if fate != "kept":
                for one in broker.log_dir.glob(f"{store.name}*"):
                    one.unlink()
            if fate == "older":
                shutil.copy(older, store)
            broker.start()
            seen += [new_id(broker), transactional_id(broker, f"b{turn}"), new_id(broker)]
        assert len(set(seen)) == len(seen), seen
        # The transactional id keeps its producer id.
        assert transactional_id(broker, "a") == seen[4]
