"""Produce, fetch and a few other requests in their plainest form."""

from typing import Any

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.record import Record, iter_records
from tests.anomalies.workload.clients import split
from tests.support.memory_client import MemoryClient
from tests.support.produce_requests import one_batch
from tests.support.quota_calls import alteration, entity
from tests.support.read_requests import one_fetch
from tests.support.whole_broker import WholeBroker

_PRODUCE, _FETCH = 9, 11


async def produced(client: MemoryClient, key: str, *values: str) -> int:
    """Produce a batch; return its first offset. Raises AssertionError if it is refused."""
    return await produced_pairs(client, key, *((None, value) for value in values))


async def produced_pairs(
    client: MemoryClient,
    key: str,
    *pairs: tuple[str | None, str | None],
    at_ms: int | None = None,
    codec: CompressionType = CompressionType.NONE,
) -> int:
    """As `produced`, with keys, dated now or `at_ms`; a value of None is a tombstone."""
    topic, partition = split(key)
    now = client.wall_ms() if at_ms is None else at_ms
    records = [(now, _raw(name), _raw(value), ()) for name, value in pairs]
    batch = build_batch(records, codec=codec)
    request = one_batch(topic, batch, partition=partition, timeout_ms=10_000)
    answer = await client.call(ApiKey.PRODUCE, _PRODUCE, request)
    (part,) = answer.responses[0].partition_responses
    assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
    return int(part.base_offset)


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


async def fetched(client: MemoryClient, key: str, start: int = 0, wait_ms: int = 0) -> list[str]:
    """Return all values from `start` to the end, read_uncommitted."""
    found = await fetched_records(client, key, start, wait_ms)
    return [bytes(record.value or b"").decode() for record in found]


async def fetched_records(
    client: MemoryClient, key: str, start: int = 0, wait_ms: int = 0
) -> list[Record]:
    """Return all data records from `start` to the end, read_uncommitted."""
    topic, partition = split(key)
    found: list[Record] = []
    while True:
        request = one_fetch(topic, start, partition=partition, size=10_000, max_wait_ms=wait_ms)
        answer = await client.call(ApiKey.FETCH, _FETCH, request)
        (part,) = answer.responses[0].partitions
        assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
        data = bytes(part.records or b"")
        if not data:
            return found
        for at, header in iter_batches(data):
            if not header.is_control:
                found += [one for one in iter_records(data, at) if one.offset >= start]
            start = header.last_offset + 1


async def make_coordinators(broker: WholeBroker) -> None:
    """Have the broker make its internal topics, by FindCoordinator."""
    for key_type in (0, 1):
        request = FindCoordinatorRequest(key="any", key_type=key_type)
        await broker.client("admin").call(ApiKey.FIND_COORDINATOR, 3, request)


async def set_quota(broker: WholeBroker, removed: str = "", **wanted: Any) -> None:
    """Set quotas of the entity that `user`, `client_id` and `ip` name. Raises AssertionError."""
    parts = {key: wanted.pop(key) for key in ("user", "client_id", "ip") if key in wanted}
    request = alteration(entity(**parts), *removed.split(), **wanted)
    admin = broker.client("admin")
    answer = await admin.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    admin.close()
    assert [one.error_code for one in answer.entries] == [0], answer
