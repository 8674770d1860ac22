"""A broker with damaged files lives, and shows or refuses the right things."""

import pytest
import trio

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from protocol.records.batch import iter_batches
from tests.support.memory_client import MemoryClient
from tests.support.topic_requests import creation, growth
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker
from tests.whole.plain import fetched, produced


async def commit(client: MemoryClient, group: str, offset: int) -> None:
    """Commit an offset of t-0, without a member."""
    find = FindCoordinatorRequest(key=group, key_type=0)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    while code:
        await client.call(ApiKey.FIND_COORDINATOR, 1, find)
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        answer = await client.call(ApiKey.OFFSET_COMMIT, 7, request)
        code = ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(client: MemoryClient, group: str) -> int:
    """Return the committed offset of t-0, -1 if there is none, once the group is loaded."""
    while True:
        request = OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        )
        answer = await client.call(ApiKey.OFFSET_FETCH, 5, request)
        if not answer.error_code:
            return int(answer.topics[0].partitions[0].committed_offset)
        await trio.lowlevel.checkpoint()


def copied(broker: WholeBroker, source: str, target: str) -> dict[str, bytes]:
    """Copy a partition directory under a name that the metadata does not know."""
    broker.disk.make_dirs(f"{LOG_DIR}/{target}")
    files = {}
    for name in broker.disk.list_dir(f"{LOG_DIR}/{source}"):
        content = broker.disk.read_bytes(f"{LOG_DIR}/{source}/{name}")
        files[name] = b"?" if name == "partition.metadata" else content
        broker.disk.write_bytes(f"{LOG_DIR}/{target}/{name}", files[name])
    return files


@whole_broker(index__interval__bytes="50", log__index__interval__bytes="50")
async def test_a_fetch_behind_a_damaged_index_waits_for_its_repair(broker: WholeBroker) -> None:
    await broker.create_topic("t", 1)
    client = broker.client()
    values = [f"v{n}" for n in range(40)]
    for value in values:
        await produced(client, "t-0", value)
    assert await broker.stop()
    path = f"{LOG_DIR}/t-0/{0:020d}.index"
    data = bytearray(broker.disk.read_bytes(path))
    data[4:-8:8] = b"\xff" * (len(data) // 8 - 1)  # positions below 0, but for the last one
    broker.disk.write_bytes(path, bytes(data))
    await broker.start()
    assert await fetched(client, "t-0", wait_ms=500) == values
    assert await fetched(client, "t-0", 30, wait_ms=500) == values[30:]
    assert broker.server.log_manager.statistics().damaged_indexes == {"offset": 1}
    assert await broker.stop()


@whole_broker()
async def test_damaged_offsets_of_groups_and_transactions_are_left_out(broker: WholeBroker) -> None:
    await broker.create_topic("t", 1)
    client = broker.client()
    for number in (5, 6, 7):
        await commit(client, "g", number)
    await commit(client, "h", 8)
    assert await broker.stop()
    path = f"{LOG_DIR}/__consumer_offsets-0/{0:020d}.log"
    data = broker.disk.read_bytes(path)
    offsets = [data.index(number.to_bytes(8, "big"), 0) + 7 for number in (5, 6, 7, 8)]
    assert len(list(iter_batches(data))) == 4
    for position in offsets:
        changed = bytearray(data)
        changed[position] ^= 16
        broker.disk.write_bytes(path, bytes(changed))
        await broker.start()
        found = {await committed(client, "g"), await committed(client, "h")}
        assert found < {5, 6, 7, 8, -1}
        broker.kill()
        broker.disk.write_bytes(path, data)
        broker.disk.write_bytes(f"{LOG_DIR}/.kafka_cleanshutdown", b"")
    await broker.start()
    assert (await committed(client, "g"), await committed(client, "h")) == (7, 8)


@pytest.mark.parametrize("validate_only", [True, False])
@whole_broker()
async def test_a_name_whose_records_lie_unserved_is_not_given_to_a_new_topic(
    broker: WholeBroker, validate_only: bool
) -> None:
    await broker.create_topic("t", 1)
    await produced(broker.client(), "t-0", "a", "b")
    assert await broker.stop()
    files = copied(broker, "t-0", "u-0")
    copied(broker, "t-0", "t-1")
    await broker.start()
    client = broker.client()
    request = creation("u", validate_only=validate_only)
    answer = await client.call(ApiKey.CREATE_TOPICS, 5, request)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert "pykafkalog adopt" in (answer.topics[0].error_message or "")
    grown = growth("t", 2, validate_only=validate_only)
    answer = await client.call(ApiKey.CREATE_PARTITIONS, 2, grown)
    assert answer.results[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    for name in (name for name in files if name.endswith(".log")):
        assert broker.disk.read_bytes(f"{LOG_DIR}/u-0/{name}") == files[name]
    assert await fetched(client, "t-0") == ["a", "b"]
