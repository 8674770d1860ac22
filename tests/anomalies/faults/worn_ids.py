"""Transactional ids near the end of their epochs, so that a run of minutes uses them up.

An epoch has 15 bits; version 2 spends one on each transaction. `wear` produces the records to
`__transaction_state`, as Kafka's tools may, that a broker would have written there after tens of
thousands of transactions; the broker reads them at its next start.
"""

import time
from collections.abc import Mapping
from random import Random
from typing import Final

from broker.coordinator.hashing import coordinator_partition
from broker.coordinator.transaction.records import encode_key, encode_value
from broker.coordinator.transaction.state import LAST_EPOCH, TransactionValue
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.records.builder import build_batch
from tests.support.produce_requests import one_batch
from tests.support.wire_client import WireClient, read_response, request_frame

TOPIC: Final = "__transaction_state"
FIRST_PRODUCER_ID: Final = 900_000
"""Far above the ids that a run gets."""
LEFT: Final = {"modern": (20, 200)}
"""By library: the least and the greatest number of epochs that are left."""
LEFT_TO_OTHERS: Final = (2, 10)
"""The older protocol spends an epoch only on each incarnation."""
_FIND, _PRODUCE = 4, 9
_TRANSACTION: Final = 1
_ADMIN: Final = "__admin_client"


def wear(
    port: int, partitions: int, libraries: Mapping[str, str], random: Random
) -> dict[str, int]:
    """Wear ids out; return their producer ids. `libraries` has the library that uses each id."""
    now = time.time_ns() // 1_000_000
    given: dict[str, int] = {}
    with WireClient(port) as client:
        _make_topic(client, next(iter(libraries)))
        for name, library in libraries.items():
            given[name] = FIRST_PRODUCER_ID + len(given)
            left = random.randint(*LEFT.get(library, LEFT_TO_OTHERS))
            value = TransactionValue(
                producer_id=given[name],
                producer_epoch=LAST_EPOCH - left,
                timeout_ms=10_000,
                updated_ms=now,
            )
            batch = build_batch([(now, encode_key(name), encode_value(value), ())])
            _append(client, coordinator_partition(name, partitions), batch)
    return given


def _make_topic(client: WireClient, name: str) -> None:
    find = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[name])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        answer = client.call(ApiKey.FIND_COORDINATOR, _FIND, find)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return
        time.sleep(0.05)
    raise AssertionError(f"no coordinator: {answer}")


def _append(client: WireClient, partition: int, batch: bytes) -> None:
    request = one_batch(TOPIC, batch, partition=partition, timeout_ms=5000)
    client.send(request_frame(ApiKey.PRODUCE, _PRODUCE, request, client_id=_ADMIN))
    _, answer = read_response(ApiKey.PRODUCE, _PRODUCE, client.receive_frame())
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.NONE, ErrorCode(code).name
