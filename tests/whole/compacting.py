"""Keys and values in a topic that is compacted, and what is left of them."""

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.record import iter_records
from storage.log.log import Log
from tests.anomalies.workload.clients import split
from tests.support.memory_client import MemoryClient
from tests.support.whole_broker import WholeBroker

_PRODUCE, _FETCH = 9, 11


def log_of(broker: WholeBroker, key: str = "t-0") -> Log:
    """The partition's log."""
    for log in broker.server.log_manager.all_logs():
        if f"{log.topic_partition.topic}-{log.topic_partition.partition}" == key:
            return log
    raise LookupError(key)


async def put(client: MemoryClient, key: str, **pairs: str | None) -> int:
    """One batch of keys and values; None: a tombstone. The offset of the first."""
    topic, partition = split(key)
    now = client.wall_ms()
    batch = build_batch(
        [
            (now, name.encode(), None if value is None else value.encode(), ())
            for name, value in pairs.items()
        ]
    )
    answer = await client.call(
        ApiKey.PRODUCE,
        _PRODUCE,
        ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        ),
    )
    (part,) = answer.responses[0].partition_responses
    assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
    return int(part.base_offset)


async def overwritten(client: MemoryClient, key: str, times: int, keys: int = 3) -> None:
    """Each of these keys so often, with a value that tells how often."""
    for number in range(times):
        await put(client, key, **{f"k{one}": f"{number:04}" * 10 for one in range(keys)})


async def left(client: MemoryClient, key: str, start: int = 0) -> list[tuple[int, str, str | None]]:
    """(offset, key, value) of all records from `start` to the end, read_uncommitted."""
    topic, partition = split(key)
    found: list[tuple[int, str, str | None]] = []
    while True:
        asked = FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=100_000)
        answer = await client.call(
            ApiKey.FETCH,
            _FETCH,
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                topics=[FetchTopic(topic=topic, partitions=[asked])],
            ),
        )
        (part,) = answer.responses[0].partitions
        assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
        data = bytes(part.records or b"")
        if not data:
            return found
        for at, header in iter_batches(data):
            if not header.is_control:
                found += [
                    (
                        record.offset,
                        bytes(record.key or b"").decode(),
                        None if record.value is None else bytes(record.value).decode(),
                    )
                    for record in iter_records(data, at)
                    if record.offset >= start
                ]
            start = header.last_offset + 1
