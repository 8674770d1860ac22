"""A broker's lives: start, stop, kill, power loss; and that it needs nothing of the machine."""

import builtins
import os
import socket
import threading

import pytest

from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from storage.log.results import StartOffsetReason
from tests.support.memory_client import PORT, MemoryClient
from tests.support.memory_transport import MemoryTransport
from tests.support.whole_broker import LOG_DIR, WholeBroker, whole_broker
from tests.whole.plain import fetched, produced


async def versions(client: MemoryClient) -> int:
    """Return the number of APIs that are served."""
    return len((await client.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())).api_keys)


@whole_broker()
async def test_a_broker_starts_answers_and_stops(broker: WholeBroker) -> None:
    assert await versions(broker.client()) > 30
    assert await broker.stop()
    assert ".kafka_cleanshutdown" in broker.disk.list_dir(LOG_DIR)
    with pytest.raises(ConnectionRefusedError):
        await versions(broker.client())
    await broker.start()
    assert ".kafka_cleanshutdown" not in broker.disk.list_dir(LOG_DIR)


@whole_broker()
async def test_s_start_4_a_life_has_kafkas_states_in_order(broker: WholeBroker) -> None:
    assert broker.states == [1, 2, 3]
    assert await broker.stop()
    assert broker.states[3:] == [6, 7, 0]
    assert broker.server.state.state == 0


@whole_broker()
async def test_s_start_4_a_start_that_fails_is_never_running(broker: WholeBroker) -> None:
    assert await broker.stop()
    broker.settings["broker.id"] = "2"  # the directory says 1
    broker.states.clear()
    with pytest.raises(AssertionError, match=r"broker\.id"):
        await broker.start()
    assert broker.states == [1, 6, 7, 0]


@whole_broker()
async def test_s_start_4_a_start_whose_port_is_taken_forgets_no_deleted_record(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t")
    await produced(broker.client(), "t-0", "a", "b")
    await produced(broker.client(), "t-0", "c")
    (log,) = broker.server.log_manager.all_logs()
    log.maybe_increment_log_start_offset(2, StartOffsetReason.CLIENT_RECORD_DELETION)
    assert await broker.stop()
    listener = Listener(name="OTHER", host=broker.host, port=PORT, protocol="PLAINTEXT")
    transport = MemoryTransport(broker.network)
    transport.listen(listener, backlog=1, send_buffer=-1, receive_buffer=-1)
    with pytest.raises(AssertionError, match="in use"):
        await broker.start()
    transport.kill()
    assert await broker.wait_ended() is False
    await broker.start()
    (log,) = broker.server.log_manager.all_logs()
    assert (log.log_start_offset, log.recovery_point) == (2, 3)
    assert await fetched(broker.client(), "t-0", 2) == ["c"]


@whole_broker()
async def test_a_broker_that_runs_is_not_run_again(broker: WholeBroker) -> None:
    client = broker.client()
    await broker.create_topic("t")
    with pytest.raises(RuntimeError, match="cannot re-start"):
        await broker.server.run()
    assert await produced(client, "t-0", "a") == 0
    assert await broker.stop()


@whole_broker()
async def test_records_are_there_after_a_stop_and_after_a_kill(broker: WholeBroker) -> None:
    await broker.create_topic("t", 2)
    client = broker.client()
    assert await produced(client, "t-1", "a", "b") == 0
    await broker.restart()
    assert await produced(client, "t-1", "c") == 2
    broker.kill()
    await broker.start()
    assert await fetched(client, "t-1") == ["a", "b", "c"]
    assert await fetched(client, "t-0") == []


@pytest.mark.parametrize("synced", [True, False])
@whole_broker()
async def test_a_power_loss_takes_unsynced_records_and_nothing_else(
    broker: WholeBroker, synced: bool
) -> None:
    await broker.create_topic("t", flush__messages="1" if synced else "1000")
    client = broker.client()
    for value in "abc":
        await produced(client, "t-0", value)
    broker.lose_power()
    await broker.start()
    assert await fetched(client, "t-0") == (["a", "b", "c"] if synced else [])
    assert await produced(client, "t-0", "d") == (3 if synced else 0)


@whole_broker(log__flush__offset__checkpoint__interval__ms="1000")
async def test_rolled_segments_survive_a_power_loss(broker: WholeBroker) -> None:
    await broker.create_topic("t", segment__bytes="200")
    client = broker.client()
    for number in range(10):
        await produced(client, "t-0", f"{number}" * 60)
    await broker.clock.sleep(40)
    for number in range(10, 13):
        await produced(client, "t-0", f"{number}" * 30)
    broker.lose_power()
    await broker.start()
    found = await fetched(client, "t-0")
    assert found[:9] == [f"{number}" * 60 for number in range(9)]


@whole_broker(log__dirs="memory:")
async def test_a_directory_of_another_name_serves_as_well(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    assert await produced(broker.client(), "t-0", "a") == 0
    assert "t-0" in broker.disk.list_dir("memory:")


def test_a_whole_broker_needs_no_thread_no_socket_and_no_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[str] = []

    def forbidden(name: str, of: object, attribute: str) -> None:
        real = getattr(of, attribute)

        def use(*args: object, **more: object) -> object:
            used.append(name)
            return real(*args, **more)

        monkeypatch.setattr(of, attribute, use)

    @whole_broker()
    async def scenario(broker: WholeBroker) -> None:
        forbidden("thread", threading.Thread, "start")
        forbidden("socket", socket, "socket")
        forbidden("os.open", os, "open")
        forbidden("open", builtins, "open")
        await broker.create_topic("t", 3)
        await produced(broker.client(), "t-0", "a")
        assert await fetched(broker.client(), "t-0") == ["a"]
        await broker.restart()
        broker.kill()
        await broker.start()
        await broker.clock.sleep(3600)
        assert await broker.stop()

    scenario()
    assert used == []


@whole_broker()
async def test_a_bug_in_a_timer_stops_the_broker(broker: WholeBroker) -> None:
    def broken() -> None:
        raise LookupError("a timer that has a bug")

    broker.server.components.deadlines.schedule(5, broken)
    assert not await broker.wait_ended()
    assert broker.server.failure is not None
    assert "bug" in broker.server.failure
    assert broker.clock.monotonic() == pytest.approx(5, abs=1)
    assert ".kafka_cleanshutdown" not in broker.disk.list_dir(LOG_DIR)


@whole_broker(log__initial__task__delay__ms="1000")
async def test_a_bug_in_a_background_task_stops_the_broker(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.create_topic("t")
    (log,) = broker.server.log_manager.all_logs()

    def broken(_: int) -> int:
        raise LookupError("a task that has a bug")

    monkeypatch.setattr(type(log.producers), "expire", lambda self, now: broken(now))
    assert not await broker.wait_ended()
    assert "bug" in (broker.server.failure or "")


@whole_broker()
async def test_a_disk_that_fails_in_the_background_is_foreseen(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    await produced(broker.client(), "t-0", "a")
    broker.disk.fail("fsync", times=None)
    broker.disk.fail("pwritev", times=None)
    assert not await broker.wait_ended()
    assert "All log dirs have failed" in (broker.server.failure or "")
