"""Transactions over the wire and over time: commits, aborts, timeouts, fencing, expiry."""

import pytest

from tests.anomalies.workload.clients import GivenUp, MustAbort
from tests.anomalies.workload.raw import RawProducer
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.committed import committed_values
from tests.whole.plain import fetched

KEYS = ("t-0", "t-1")
VERSIONS = pytest.mark.parametrize("version", [1, 2])


async def owner(broker: WholeBroker, version: int, timeout_ms: int = 8000) -> RawProducer:
    """Make a new owner of the transactional id."""
    line = broker.client("producer")
    return await RawProducer(line, "id", version=version, transaction_timeout_ms=timeout_ms).open()


async def committed(broker: WholeBroker) -> list[str]:
    """The values of both partitions that a read_committed reader gets, sorted."""
    return sorted(await committed_values(broker, *KEYS))


async def sent(producer: RawProducer, *values: str) -> None:
    """Begin a transaction and send values; do not end it."""
    await producer.begin()
    for number, value in enumerate(values):
        await producer.send(KEYS[number % 2], value)
    await producer.flush()


@VERSIONS
@whole_broker()
async def test_readers_see_committed_records_and_no_others(
    broker: WholeBroker, version: int
) -> None:
    await broker.create_topic("t", 2)
    producer = await owner(broker, version)
    await sent(producer, "a", "b")
    assert await committed(broker) == []
    await producer.commit()
    await sent(producer, "x", "y")
    await producer.abort()
    await sent(producer, "c", "d")
    await producer.commit()
    assert await committed(broker) == ["a", "b", "c", "d"]
    assert await fetched(broker.client(), "t-0") == ["a", "x", "c"]


@VERSIONS
@whole_broker()
async def test_a_transaction_that_outlives_its_timeout_is_aborted(
    broker: WholeBroker, version: int
) -> None:
    await broker.create_topic("t", 2)
    producer = await owner(broker, version, timeout_ms=30_000)
    await sent(producer, "a")
    await broker.clock.sleep(29)
    assert len(list(broker.server.components.transaction_coordinator.list_transactions())) == 1
    await broker.clock.sleep(12)
    with pytest.raises((GivenUp, MustAbort)):
        await producer.commit()
    successor = await owner(broker, version)
    await sent(successor, "b")
    await successor.commit()
    assert await committed(broker) == ["b"]


@VERSIONS
@whole_broker()
async def test_a_new_owner_fences_the_old_one_and_aborts_its_transaction(
    broker: WholeBroker, version: int
) -> None:
    await broker.create_topic("t", 2)
    zombie = await owner(broker, version)
    await sent(zombie, "a", "b")
    successor = await owner(broker, version)
    with pytest.raises(GivenUp):
        await zombie.commit()
    await sent(successor, "c")
    await successor.commit()
    assert await committed(broker) == ["c"]


@VERSIONS
@whole_broker()
async def test_a_transaction_continues_after_a_kill_of_the_broker(
    broker: WholeBroker, version: int
) -> None:
    await broker.create_topic("t", 2)
    producer = await owner(broker, version)
    await sent(producer, "a")
    broker.kill()
    await broker.start()
    await producer.send("t-1", "b")
    await producer.flush()
    await producer.commit()
    assert await committed(broker) == ["a", "b"]


@whole_broker(
    transactional__id__expiration__ms="3600000",
    transaction__remove__expired__transaction__cleanup__interval__ms="60000",
)
async def test_a_transactional_id_that_rests_is_forgotten(broker: WholeBroker) -> None:
    await broker.create_topic("t", 2)
    coordinator = broker.server.components.transaction_coordinator
    producer = await owner(broker, 2)
    await sent(producer, "a")
    await producer.commit()
    await broker.clock.sleep(3000)
    assert len(list(coordinator.list_transactions())) == 1
    await broker.clock.sleep(1000)
    assert list(coordinator.list_transactions()) == []


@whole_broker()
async def test_the_next_transaction_may_be_aborted_while_markers_are_written(
    broker: WholeBroker,
) -> None:
    """EndTxn 5 is answered before the last of many markers is written (KIP-890)."""
    await broker.create_topic("t", 300)
    producer = await owner(broker, 2)
    for _ in range(3):
        await producer.begin()
        for partition in range(300):
            await producer.send(f"t-{partition}", "a")
        await producer.flush()
        await producer.commit()
        await producer.begin()
        await producer.abort()
    assert len(await committed(broker)) == 6
