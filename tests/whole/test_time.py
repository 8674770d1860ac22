"""A log over time: it rolls, old segments go, silent producers are forgotten."""

from protocol.api_keys import ApiKey
from protocol.messages.init_producer_id import InitProducerIdRequest
from storage.log.log import Log
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker
from tests.whole.plain import fetched, produced

HOUR = 3600.0


def only_log(broker: WholeBroker) -> Log:
    (log,) = broker.server.log_manager.all_logs()
    return log


def files(broker: WholeBroker, suffix: str) -> list[str]:
    return [name for name in broker.disk.list_dir(f"{LOG_DIR}/t-0") if name.endswith(suffix)]


@whole_broker(log__retention__check__interval__ms="60000")
async def test_segments_roll_by_time_and_go_when_they_are_old(broker: WholeBroker) -> None:
    await broker.create_topic("t", segment__ms="3600000", retention__ms="7200000")
    client = broker.client()
    for number in range(4):
        await produced(client, "t-0", f"{number}")
        await broker.clock.sleep(1.01 * HOUR)
    assert only_log(broker).log_start_offset > 0
    left = await fetched(client, "t-0", only_log(broker).log_start_offset)
    assert left == [f"{number}" for number in range(4)][-len(left) :]
    await broker.clock.sleep(3 * HOUR)
    assert await fetched(client, "t-0", 4) == []
    assert only_log(broker).log_start_offset == 4
    await broker.clock.sleep(120)
    assert files(broker, ".deleted") == []
    assert files(broker, ".log") == ["00000000000000000004.log"]
    assert await produced(client, "t-0", "next") == 4


@whole_broker(log__retention__check__interval__ms="60000")
async def test_segments_beyond_retention_bytes_are_deleted(broker: WholeBroker) -> None:
    await broker.create_topic("t", segment__bytes="300", retention__bytes="900")
    client = broker.client()
    for number in range(20):
        await produced(client, "t-0", f"{number:03}" * 40)
    await broker.clock.sleep(200)
    log = only_log(broker)
    assert 900 <= log.size < 1300
    assert (await fetched(client, "t-0", log.log_start_offset))[-1] == "019" * 40


@whole_broker()
async def test_rolled_segments_are_synced_and_checkpointed_without_a_stop(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", segment__bytes="300")
    for number in range(6):
        await produced(broker.client(), "t-0", f"{number}" * 120)
    await broker.clock.sleep(2)
    log = only_log(broker)
    assert 0 < log.segments.active.base_offset <= log.recovery_point
    await broker.clock.sleep(5)
    # The end of a log that gets no more appends is checkpointed, too.
    checkpoint = broker.disk.read_bytes(f"{LOG_DIR}/recovery-point-offset-checkpoint")
    assert b"t 0 6" in checkpoint
    assert log.recovery_point == log.log_end_offset == 6


@whole_broker(producer__id__expiration__ms="3600000")
async def test_a_producer_that_is_silent_is_forgotten(broker: WholeBroker) -> None:
    from tests.anomalies.workload.raw import RawProducer

    await broker.create_topic("t")
    producer = await RawProducer(broker.client(), "id").open()
    await producer.begin()
    await producer.send("t-0", "a")
    await producer.flush()
    await producer.commit()
    log = next(
        log for log in broker.server.log_manager.all_logs() if log.topic_partition.topic == "t"
    )
    await broker.clock.sleep(3000)
    assert log.producers.producer_count == 1
    await broker.clock.sleep(1300)
    assert log.producers.producer_count == 0


@whole_broker(connections__max__idle__ms="60000")
async def test_an_idle_connection_is_closed(broker: WholeBroker) -> None:
    client = broker.client()
    await client.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest())
    await broker.clock.sleep(50)
    assert broker.server.components.socket_server.statistics().idle_closed == 0
    await broker.clock.sleep(30)
    assert broker.server.components.socket_server.statistics().idle_closed == 1
