"""Keys and values in a compacted topic, and those that are left of them."""

from storage.log.log import Log
from tests.support.memory_client import MemoryClient
from tests.support.whole_broker import WholeBroker
from tests.whole.plain import fetched_records, produced_pairs


def log_of(broker: WholeBroker, key: str = "t-0") -> Log:
    """Return the partition's log."""
    for log in broker.server.log_manager.all_logs():
        if f"{log.topic_partition.topic}-{log.topic_partition.partition}" == key:
            return log
    raise LookupError(key)


async def put(client: MemoryClient, key: str, **pairs: str | None) -> int:
    """Produce a batch of keys and values, None for a tombstone; return its first offset."""
    return await produced_pairs(client, key, *pairs.items())


async def overwritten(client: MemoryClient, key: str, times: int, keys: int = 3) -> None:
    """Write each of these keys so many times, with a number as the value."""
    for number in range(times):
        await put(client, key, **{f"k{one}": f"{number:04}" * 10 for one in range(keys)})


async def left(client: MemoryClient, key: str, start: int = 0) -> list[tuple[int, str, str | None]]:
    """Return (offset, key, value) of all records from `start` on, read_uncommitted."""
    return [
        (
            record.offset,
            bytes(record.key or b"").decode(),
            None if record.value is None else bytes(record.value).decode(),
        )
        for record in await fetched_records(client, key, start)
    ]
