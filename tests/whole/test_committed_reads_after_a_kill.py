"""A broker that was killed answers read_committed readers at once, and correctly."""

import logging

import pytest

from protocol.api_keys import ApiKey
from tests.anomalies.workload.raw import RawProducer
from tests.simulation.readers import records_of
from tests.support.memory_client import MemoryClient
from tests.support.read_requests import one_fetch
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker

INDEX = f"{LOG_DIR}/t-0/{0:020d}.txnindex"
READ = "Reading a log to know its aborted transactions"
"""The log line of a broker whose reader has to wait for that."""


async def committed(client: MemoryClient, wait_ms: int) -> list[str]:
    """Read t-0 up to an empty answer, and wait so long for each; return the committed values."""
    found: list[str] = []
    start = 0
    while True:
        request = one_fetch("t", start, size=500, max_wait_ms=wait_ms, isolation_level=1)
        answer = await client.call(ApiKey.FETCH, 11, request)
        (part,) = answer.responses[0].partitions
        if not part.records:
            return found
        pairs, start = records_of(part, start, committed=True)
        found += [value for _, value in pairs]


async def prepared(broker: WholeBroker) -> list[str]:
    """Transactions that end both ways, before and after the moment up to which all is synced."""
    await broker.create_topic("t", 1)
    producer = await RawProducer(broker.client("producer"), "id", version=2).open()
    values: list[str] = []
    for number in range(12):
        await producer.begin()
        await producer.send("t-0", f"{number}")
        await producer.flush()
        if number % 3:
            await producer.abort()
        else:
            await producer.commit()
            values.append(f"{number}")
        if number == 7:
            await broker.clock.sleep(20)
    log = broker.server.log_manager.get_log(("t", 0))  # type: ignore[arg-type]
    assert log is not None
    assert 0 < log.recovery_point < log.log_end_offset
    return values


@whole_broker(log__index__interval__bytes="50", log__index__size__max__bytes="4096")
async def test_committed_reads_after_a_kill_are_answered_at_once(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    values = await prepared(broker)
    for _ in range(3):
        broker.kill()
        await broker.start()
        assert await committed(broker.client(), wait_ms=0) == values
        await broker.clock.sleep(10)
    assert READ not in caplog.text


@pytest.mark.parametrize("size", [0, 34, 90])
@whole_broker(log__index__interval__bytes="50", log__index__size__max__bytes="4096")
async def test_an_index_that_was_cut_meanwhile_shows_no_aborted_record(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    caplog.set_level(logging.INFO)
    values = await prepared(broker)
    broker.kill()
    broker.disk.write_bytes(INDEX, broker.disk.read_bytes(INDEX)[:size])
    await broker.start()
    begin = broker.clock.monotonic()
    assert await committed(broker.client(), wait_ms=5000) == values
    assert READ in caplog.text
    # The last fetch waits in vain; the first one has not waited for the next round of a task.
    assert broker.clock.monotonic() - begin < 5.02
