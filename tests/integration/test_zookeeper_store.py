"""A `ZooKeeperStore` on real servers: watches, sessions, lost connections, registration."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.cluster.image import BrokerImage
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeExistsError,
    Put,
    StoreUnavailableError,
    VersionMismatchError,
)
from broker.zookeeper import log_watch, registration
from broker.zookeeper.operations import MOST_BYTES, RequestTooLargeError
from broker.zookeeper.registration import BrokerRegistrationError, register
from broker.zookeeper.requests import Lost, Waited
from broker.zookeeper.session import SessionState
from broker.zookeeper.zookeeper_store import PERSISTENT_PATHS, ZooKeeperStore
from config.listener import Listener
from storage.waits import Work, sleep, together
from tests.support.ports import free_port
from tests.support.zookeeper import Ensemble, ZooKeeper
from tests.support.zookeeper_stores import (
    Hearing,
    expire,
    open_zookeeper_store,
    run_on_loop,
    with_store,
)

pytestmark = pytest.mark.integration

CREATED, CHANGED, DELETED = NodeChange.CREATED, NodeChange.CHANGED, NodeChange.DELETED
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def connect(server: ZooKeeper) -> str:
    """A tree of its own for each test, on one server."""
    return f"{server.connect}/s{next(_numbers)}"


def with_two(
    connect: str, scenario: Callable[[ZooKeeperStore, ZooKeeperStore], Work[None]]
) -> None:
    async def whole() -> None:
        async def inner(store: ZooKeeperStore) -> None:
            await with_store(connect, lambda other: scenario(store, other))

        await with_store(connect, inner)

    run_on_loop(whole())


# ---- the start


def test_a_start_makes_the_path_and_kafkas_top_nodes_without_values(connect: str) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        assert store.state is SessionState.CONNECTED
        assert store.session_id
        assert None not in await store.get_many(PERSISTENT_PATHS)
        raw = store._session.client.get(f"{store._tree.chroot}/brokers/ids")[0]
        assert raw is None  # not an empty value: as Kafka makes it
        await store.close()
        await store.close()
        assert store.state is SessionState.CLOSED

    run_on_loop(with_store(connect, scenario))
    run_on_loop(with_store(connect + "/deeper/down", lambda store: store.children("")))


def test_several_starts_at_once_make_them_together(connect: str) -> None:
    async def whole() -> None:
        await together(
            *(with_store(connect, lambda store: store.children("/brokers")) for _ in range(4))
        )

    run_on_loop(whole())


def test_the_error_names_a_zookeeper_that_does_not_answer() -> None:
    port = free_port()
    with pytest.raises(MetadataStoreError) as caught:
        run_on_loop(open_zookeeper_store(f"127.0.0.1:{port}/k", connection_timeout_s=0.5))
    assert str(caught.value) == (
        f"zookeeper.connect: no ZooKeeper server of 127.0.0.1:{port}/k has answered within 0.5 s "
        "(zookeeper.connection.timeout.ms). The last error: Connection refused"
    )


# ---- watches


def test_a_watch_hears_of_what_others_change(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        heard = Hearing()
        store.watch("/w", heard)
        await store.get("/w")
        await other.create("/w", b"1")
        await heard.until_told(("/w", CREATED))
        await other.apply([Create(f"/w/{n}", b"x") for n in range(30)])
        await heard.until_told(*((f"/w/{n}", CREATED) for n in range(30)))
        await other.put("/w/7", b"y")
        await heard.until_told(("/w/7", CHANGED))
        await other.put("/w/7", b"z")
        await heard.until_told(("/w/7", CHANGED))
        await other.put("/w", b"2")
        await heard.until_told(("/w", CHANGED))
        await other.delete("/w/7")
        await heard.until_told(("/w/7", DELETED))
        await other.create("/w/7")
        await heard.until_told(("/w/7", CREATED))
        await other.apply([Delete("/w", recursive=True)])
        await heard.until_told(("/w", DELETED), *((f"/w/{n}", DELETED) for n in range(30)))
        await other.create("/w/again")
        await heard.until_told(("/w", CREATED), ("/w/again", CREATED))
        await other.put("/w/again", b"1")
        await heard.until_told(("/w/again", CHANGED))

    with_two(connect, scenario)


def test_a_watcher_hears_of_an_own_change_once_and_the_watch_stays(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        heard = Hearing()
        store.watch("/w", heard)
        await store.create("/w/a", b"1")
        assert heard.events == [("/w", CREATED), ("/w/a", CREATED)]
        await store.put("/w/a", b"2")
        assert heard.events[2:] == [("/w/a", CHANGED)]
        await other.put("/w/a", b"3")
        await heard.until(lambda heard: len(heard.events) >= 4)
        await store.delete("/w/a")
        await other.create("/w/b")
        await heard.until(lambda heard: ("/w/b", CREATED) in heard.events)
        assert heard.events[3:] == [("/w/a", CHANGED), ("/w/a", DELETED), ("/w/b", CREATED)]

    with_two(connect, scenario)


def test_a_tree_with_a_log_is_watched_by_its_log(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        topics, users, rules = Hearing(), Hearing(), Hearing()
        store.watch("/config/topics", topics)
        store.watch("/config/users", users)
        stop = store.watch("/kafka-acl", rules)
        await store.get("/config/topics/t")
        await other.create("/config/topics/t", b"{}")
        await topics.until_told(("/config/topics/t", CHANGED))
        await other.put("/config/topics/t", b"{}")
        await topics.until_told(("/config/topics/t", CHANGED))
        await other.create("/config/users/u/clients/c", b"{}")
        await users.until_told(("/config/users/u/clients/c", CHANGED))
        assert topics.events == []
        await other.create("/kafka-acl/Topic/t", b"{}")
        await rules.until_told(("/kafka-acl/Topic/t", CHANGED))
        await other.delete("/kafka-acl/Topic/t")
        await rules.until_told(("/kafka-acl/Topic/t", CHANGED))
        await store.create("/kafka-acl/Topic/u", b"{}")
        assert ("/kafka-acl/Topic/u", CREATED) in rules.events
        stop()
        names = await store.children("/config/changes")
        assert names == [f"config_change_{n:010d}" for n in range(3)]
        first = await store.get("/config/changes/config_change_0000000000")
        assert first is not None
        assert first.value == b'{"version":2,"entity_path":"topics/t"}'

    with_two(connect, scenario)


def test_old_notifications_are_removed(connect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_watch, "EXPIRES_AFTER_MS", 300)

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        heard = Hearing()
        store.watch("/config/topics", heard)
        await other.create("/config/topics/a", b"{}")
        await heard.until_told(("/config/topics/a", CHANGED))
        await sleep(0.5)
        await other.create("/config/topics/b", b"{}")
        await heard.until_told(("/config/topics/b", CHANGED))
        while "config_change_0000000000" in await other.children("/config/changes"):
            await sleep(0.02)
        assert await other.children("/config/changes") == ["config_change_0000000001"]

    with_two(connect, scenario)


def test_a_watcher_hears_of_every_node_after_missed_notifications(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        heard = Hearing()
        store.watch("/config/topics", heard)
        await other.apply([Create(f"/config/topics/{name}", b"{}") for name in "abc"])
        await heard.until_told(*((f"/config/topics/{name}", CHANGED) for name in "abc"))
        (log,) = (log for log in store._logs.values() if log._watchers)
        log._fired = log._fired_in_thread = lambda event: None  # type: ignore[method-assign]
        store._session.client._child_watchers.clear()  # it hears nothing for a while
        await other.put("/config/topics/a", b"1")
        await other.apply([Delete("/config/changes/config_change_0000000003")])
        await other.put("/config/topics/b", b"1")
        log.look()
        await heard.until_told(*((f"/config/topics/{name}", CHANGED) for name in "abc"))

    with_two(connect, scenario)


# ---- the session


def test_watchers_hear_of_an_expired_session_and_of_changes_meanwhile(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        heard, nodes, configs = Hearing(), Hearing(), Hearing()
        store.watch_session(heard.session)
        store.watch("/w", nodes)
        store.watch("/config/topics", configs)
        await store.create("/w/mine", b"x", ephemeral=True)
        await store.create("/w/stays", b"x")
        first = store.session_id
        assert await other.owner("/w/mine") == first
        nodes.events.clear()
        expire(store)
        await other.put("/w/stays", b"y")
        await other.create("/config/topics/t", b"{}")
        await heard.until(lambda heard: SessionState.CONNECTED in heard.states)
        assert heard.states == [
            SessionState.SUSPENDED,
            SessionState.EXPIRED,
            SessionState.CONNECTED,
        ]
        assert store.session_id != first
        assert store.ended_sessions == {first}
        await nodes.until_told(("/w/mine", DELETED), ("/w/stays", CHANGED))
        await configs.until_told(("/config/topics/t", CHANGED))
        await other.create("/w/later")
        await nodes.until_told(("/w/later", CREATED))
        statistics = store.statistics()
        assert (statistics.times_expired, statistics.times_connected) == (1, 2)

    with_two(connect, scenario)


def test_a_server_that_was_away_is_found_again_by_the_same_session(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path) as server:

        async def scenario(store: ZooKeeperStore) -> None:
            heard, nodes = Hearing(), Hearing()
            store.watch_session(heard.session)
            await store.create("/w/mine", ephemeral=True)
            store.watch("/w", nodes)
            session = store.session_id
            server.kill()
            await heard.until(lambda heard: SessionState.SUSPENDED in heard.states)
            server.start()
            await store.create("/w/b")  # waits for the connection
            assert heard.states == [SessionState.SUSPENDED, SessionState.CONNECTED]
            assert store.session_id == session
            assert await store.children("/w") == ["b", "mine"]
            assert ("/w/b", CREATED) in nodes.events

        run_on_loop(with_store(server.connect, scenario, session_timeout_s=60))


def test_without_a_connection_operations_wait_and_end(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path) as server:

        async def scenario(store: ZooKeeperStore) -> None:
            await store.create("/a", b"1")
            server.pause()
            refused = []

            async def one(work: Work[Any]) -> None:
                with pytest.raises(StoreUnavailableError) as caught:
                    await work
                refused.append(str(caught.value))

            await together(
                one(store.get("/a")), one(store.put("/a", b"2")), one(store.children("/"))
            )
            assert len(refused) == 3
            assert all("no connection to ZooKeeper for 1 s" in text for text in refused)
            server.resume()
            assert await store.get("/a") is not None

        run_on_loop(with_store(server.connect, scenario, session_timeout_s=1))


def test_the_leader_of_an_ensemble_may_die(tmp_path: Path) -> None:
    with Ensemble(tmp_path) as ensemble:

        async def scenario(store: ZooKeeperStore) -> None:
            await store.create("/a", b"0")
            session = store.session_id
            for number in range(1, 4):
                leader = ensemble.leader()
                leader.kill()
                assert await store.put("/a", b"%d" % number, version=number - 1) == number
                applied = await store.apply_each(
                    [Create(f"/n{number}/{n}/state") for n in range(50)]
                )
                assert applied == [0] * 50
                ensemble.start()
            assert store.session_id == session

        run_on_loop(with_store(ensemble.connect, scenario, session_timeout_s=60))


def test_an_ephemeral_node_is_not_made_in_a_later_session(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        expire(store)
        heard = Hearing()
        store.watch_session(heard.session)
        await heard.until(lambda heard: SessionState.SUSPENDED in heard.states)
        with pytest.raises(StoreUnavailableError, match="session in which it was asked for"):
            await store.create("/mine", ephemeral=True)  # waits for a connection
        assert await other.get("/mine") is None
        await store.create("/ours")
        await store.create("/mine", ephemeral=True)
        assert await other.owner("/mine") == store.session_id

    with_two(connect, scenario)


def test_a_server_that_is_silent_is_left_in_time(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path) as server:
        server.pause()
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="no ZooKeeper server of"):
            run_on_loop(open_zookeeper_store(server.connect, connection_timeout_s=0.5))
        assert time.monotonic() - began < 15


# ---- writes


def lose_the_next_answer(store: ZooKeeperStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next request be done and its answer be lost."""
    real = store._requests.wait_for
    waiting = [True]

    async def wait_for(waited: Sequence[Waited]) -> None:
        await real(waited)
        if waiting and isinstance(waited[0].value, list) and not waited[0].request.repeatable:
            waiting.clear()
            waited[0].error = Lost()

    monkeypatch.setattr(store._requests, "wait_for", wait_for)


@pytest.mark.parametrize(
    "operations",
    [
        [Create("/new", b"1"), Put("/new", b"2", 0), Put("/old", b"n", 0)],
        [Delete("/old"), Create("/old", b"anew")],
        [Delete("/old")],
        [Delete("/old", recursive=True)],
        [Put("/old", b"n")],
        [Create("/some/where/below", b"x")],
    ],
)
def test_a_write_whose_answer_was_lost_is_made_once(
    connect: str, operations: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        await store.create("/old", b"o")
        lose_the_next_answer(store, monkeypatch)
        await store.apply(operations)
        for operation in operations[-1:]:
            node = await store.get(operation.path)
            assert (node is None) if isinstance(operation, Delete) else node is not None

    run_on_loop(with_store(connect, scenario))


def test_a_write_of_another_is_not_taken_for_ones_own(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        await store.create("/old", b"o")
        await other.put("/old", b"theirs")
        with pytest.raises(VersionMismatchError):
            lose_the_next_answer(store, monkeypatch)
            await store.put("/old", b"mine", version=0)
        await other.create("/new", b"theirs")
        with pytest.raises(NodeExistsError):
            await store.create("/new", b"mine")

    with_two(connect, scenario)


def test_a_request_that_is_too_large_is_refused_and_the_session_lives(connect: str) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        session = store.session_id
        with pytest.raises(RequestTooLargeError, match=r"^/large: 1 changes .*jute\.maxbuffer"):
            await store.create("/large", bytes(MOST_BYTES))
        many = [Create(f"/many/{number:0200d}") for number in range(5000)]
        with pytest.raises(RequestTooLargeError):
            await store.apply(many)
        applied = await store.apply_each([*many[:3], Create("/large", bytes(MOST_BYTES))])
        assert isinstance(applied[-1], RequestTooLargeError)
        fits = MOST_BYTES - 2000
        await store.create("/fits", bytes(fits))
        assert len(getattr(await store.get("/fits"), "value", b"")) == fits
        assert store.session_id == session
        assert store.statistics().times_suspended == 0

    run_on_loop(with_store(connect, scenario))


def test_a_tree_of_any_size_is_deleted(connect: str) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        name = "x" * 150
        await store.apply_each([Create(f"/t/{name}/{n}/state", b"x") for n in range(1500)])
        await store.apply([Create("/mark"), Delete("/t", recursive=True)])
        assert await store.get("/t") is None
        assert await store.get("/mark") is not None

    run_on_loop(with_store(connect, scenario))


def test_a_path_that_zookeeper_does_not_take_is_refused(connect: str) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        for path in ("/config/users/..", "/a\x01b", "/a//b"):
            with pytest.raises(MetadataStoreError):
                await store.create(path, b"x")
            assert await store.get(path) is None
        assert await store.get("/config") is not None

    run_on_loop(with_store(connect, scenario))


def test_many_writers_of_one_tree_do_not_lose_each_other(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        async def make(one: ZooKeeperStore, name: str) -> None:
            for number in range(20):
                await one.create(f"/deep/{number}/a/b/{name}", b"x")

        async def clear(one: ZooKeeperStore) -> None:
            for number in range(20):
                await one.apply([Delete(f"/deep/{number}", recursive=True)])

        await together(make(store, "s"), make(other, "o"), clear(store), clear(other))

    with_two(connect, scenario)


# ---- registration


def broker(broker_id: int, port: int = 9092) -> BrokerImage:
    endpoint = Listener(name="PLAINTEXT", host="h", port=port, protocol="PLAINTEXT")
    return BrokerImage(broker_id=broker_id, endpoints=(endpoint,), rack=None)


def test_a_broker_is_registered_with_a_growing_epoch(connect: str) -> None:
    async def scenario(store: ZooKeeperStore) -> None:
        epoch = await register(store, broker(1), timestamp_ms=7)
        node = await store.get("/brokers/ids/1")
        assert node is not None
        assert node.created == epoch
        assert b'"timestamp":"7"' in node.value
        assert await register(store, broker(1), timestamp_ms=8) == epoch
        expire(store)
        heard = Hearing()
        store.watch_session(heard.session)
        await heard.until(lambda heard: SessionState.CONNECTED in heard.states)
        assert await register(store, broker(1), timestamp_ms=9) > epoch

    run_on_loop(with_store(connect, scenario))


def test_an_id_and_an_endpoint_belong_to_one_broker(connect: str) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        await register(store, broker(1), timestamp_ms=7)
        with pytest.raises(BrokerRegistrationError, match="a broker with id 1 is already regist"):
            await register(other, broker(1, 9093), timestamp_ms=7)
        with pytest.raises(BrokerRegistrationError, match="broker 1 is registered with h:9092"):
            await register(other, broker(2), timestamp_ms=7)
        assert await other.children("/brokers/ids") == ["1"]

    with_two(connect, scenario)


def test_a_broker_that_was_killed_takes_its_id_back_when_its_session_ends(connect: str) -> None:
    async def whole() -> None:
        old = await open_zookeeper_store(connect, session_timeout_s=1)
        epoch = await register(old, broker(1), timestamp_ms=7)
        old._session.client._connection._socket.close()  # as a kill does
        old._session.client._stopped.set()

        async def again(store: ZooKeeperStore) -> None:
            assert await register(store, broker(1), timestamp_ms=8) > epoch

        await with_store(connect, again)
        await old.close()

    run_on_loop(whole())


def test_a_living_twin_is_not_waited_for_for_ever(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_LONGEST_ENDS", 0.05)

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        await register(store, broker(1), timestamp_ms=7)
        with pytest.raises(BrokerRegistrationError, match="already registered"):
            await register(other, broker(1), timestamp_ms=7)

    with_two(connect, scenario)
