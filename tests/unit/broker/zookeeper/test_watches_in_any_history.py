"""Whatever others do and however the connection fails: who watches ends up knowing the tree."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.cluster.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    Put,
)
from broker.zookeeper import session as session_module
from broker.zookeeper.session import SessionState
from broker.zookeeper.zookeeper_store import ZooKeeperStore
from storage.waits import Signal, Work, sleep, together
from tests.support.fake_zookeeper import FakeClient, FakeZooKeeper
from tests.support.zookeeper_stores import open_zookeeper_store, run_on_loop

NAMES = ("a", "b", "c")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(("put", "create", "delete", "own put", "own create", "own delete")),
            st.sampled_from(NAMES),
        ),
        st.tuples(
            st.sampled_from(("drop", "back", "expire", "hold", "let go", "tree", "turn", "turn")),
            st.just(""),
        ),
    ),
    max_size=30,
)


@contextmanager
def fake() -> Iterator[FakeZooKeeper]:
    server = FakeZooKeeper()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "_new_client", server.client)
        yield server


class Picture:
    """A watcher's knowledge of a tree: it reads each node that an event names."""

    def __init__(self, server: FakeZooKeeper, chroot: str) -> None:
        self.known: dict[str, bytes] = {}
        self._server, self._chroot = server, chroot

    def __call__(self, events: Sequence[NodeEvent]) -> None:
        for path, _ in events:
            node = self._server.nodes.get(self._chroot + path)
            if node is None:
                self.known.pop(path, None)
            else:
                self.known[path] = node.value or b""


async def quietly(work: Work[Any]) -> None:
    with suppress(MetadataStoreError):
        await work


class History:
    """One store that watches, another that writes, and the network of the first."""

    def __init__(self, server: FakeZooKeeper, store: ZooKeeperStore, other: ZooKeeperStore) -> None:
        self.store, self.other = store, other
        self.client: FakeClient = server.clients[0]
        self.random = Random(1)
        self.is_dropped = False
        self._count = 0

    async def step(self, what: str, path: str) -> None:
        client = self.client
        match what.split():
            case ["drop"] if not self.is_dropped:
                self.is_dropped = True
                client.drop(self.random)
            case ["back"] if self.is_dropped:
                self.is_dropped = False
                client.come_back()
            case ["expire"]:
                self.is_dropped = False
                client.expire(self.random)
            case ["hold"] if not self.is_dropped:
                client.hold()
            case ["let", "go"]:
                client.let_go()
            case ["tree"]:
                root = path.rpartition("/")[0]
                await quietly(self.other.apply([Delete(root, recursive=True)]))
            case ["turn"]:
                await sleep(0)
            case [kind] if kind in ("put", "create", "delete"):
                await quietly(self.change(self.other, kind, path))

    async def own(self, when: Signal[None], what: str, path: str) -> None:
        """A change by the store that watches, made while others go on."""
        await when
        await quietly(self.change(self.store, what.removeprefix("own "), path))

    def change(self, store: ZooKeeperStore, kind: str, path: str) -> Work[Any]:
        self._count += 1
        value = b"%d" % self._count
        return {
            "put": lambda: store.put(path, value),
            "create": lambda: store.create(path, value),
            "delete": lambda: store.delete(path),
        }[kind]()

    async def settle(self) -> None:
        if self.is_dropped:
            self.client.come_back()
        self.client.let_go()
        for _ in range(20):
            await sleep(0)
            await self.store.get("/nothing")


def play(steps: Sequence[tuple[str, str]], root: str, watched: str) -> None:
    with fake() as server:

        async def whole() -> None:
            store = await open_zookeeper_store("fake/k")
            other = await open_zookeeper_store("fake/k")
            picture = Picture(server, "/k")
            store.watch(watched, picture)
            history = History(server, store, other)
            signals = [Signal[None]() for _ in steps]

            async def go() -> None:
                for signal, (what, name) in zip(signals, steps, strict=True):
                    signal.fire()
                    await history.step(what, f"{root}/{name}")
                await history.settle()

            await together(
                go(),
                *(
                    history.own(signal, what, f"{root}/{name}")
                    for signal, (what, name) in zip(signals, steps, strict=True)
                    if what.startswith("own")
                ),
            )
            await history.settle()
            there = {
                path.removeprefix("/k"): node.value or b""
                for path, node in server.nodes.items()
                if f"{path}/".startswith(f"/k{watched}/")
            }
            known = {path: value for path, value in picture.known.items() if path != watched}
            there.pop(watched, None)
            assert known == there
            await store.close()
            await other.close()

        run_on_loop(whole())


MADE_AGAIN_BETWEEN_LOOKS = [
    *(("create", "a"), ("turn", ""), ("turn", ""), ("hold", "")),
    *(("delete", "a"), ("create", "a"), ("let go", "")),
]


@given(STEPS)
@example(MADE_AGAIN_BETWEEN_LOOKS)
def test_a_watch_of_a_node_and_its_children(steps: list[tuple[str, str]]) -> None:
    play(steps, "/w", "/w")


@given(STEPS)
def test_a_watch_of_a_tree_with_a_log(steps: list[tuple[str, str]]) -> None:
    changes = [step for step in steps if step[0] != "tree"]  # which tells of the root alone
    play(changes, "/config/users", "/config/users")


# ---- requests


Scenario = Callable[[FakeZooKeeper, FakeClient, ZooKeeperStore], Work[None]]


def with_fake(scenario: Scenario) -> Callable[[], None]:
    """A test that gets a fake server, and a client and the store over it."""

    def run() -> None:
        with fake() as server:

            async def whole() -> None:
                store = await open_zookeeper_store("fake", session_timeout_s=0.2)
                try:
                    await scenario(server, server.clients[0], store)
                finally:
                    await store.close()

            run_on_loop(whole())

    return run


@with_fake
async def test_no_more_requests_are_under_way_than_allowed(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    client.hold()
    waiting = [store.get(f"/{number}") for number in range(25)]

    async def look() -> None:
        await sleep(0.01)
        assert store.statistics().in_flight == len(client._held) == 10
        client.let_go()

    await together(look(), *waiting)
    assert store.statistics().in_flight == 0


@with_fake
async def test_reads_that_were_lost_are_made_again(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    await store.create("/a", b"1")
    client.hold()

    async def read() -> None:
        node = await store.get("/a")
        assert node is not None
        assert node.value == b"1"

    async def lose() -> None:
        await sleep(0.01)
        client.drop()
        await sleep(0.01)
        client.come_back()

    await together(read(), lose())


@pytest.mark.parametrize("seed", range(4))
def test_writes_that_were_lost_are_made_once(seed: int) -> None:
    @with_fake
    async def write_once(server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore) -> None:
        await store.apply([Create("/n", b"0"), Create("/epoch")])
        client.hold()

        async def write() -> None:
            await store.apply([Check("/epoch", 0), Put("/n", b"1", 0)])
            applied = await store.apply_each([Put("/n", b"2", 1), Create("/m")], [Check("/epoch")])
            assert applied == [2, 0]

        async def lose() -> None:
            for _ in range(3):
                await sleep(0.005)
                client.drop(Random(seed))
                await sleep(0.005)
                client.come_back()

        await together(write(), lose())
        node = await store.get("/n")
        assert node is not None
        assert (node.value, node.version) == (b"2", 2)

    write_once()


@with_fake
async def test_states_are_told_in_their_order(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    states: list[SessionState] = []
    stop = store.watch_session(states.append)
    client.drop()
    client.come_back()
    client.expire()
    await store.get("/a")
    assert [state.name for state in states] == [
        *("SUSPENDED", "CONNECTED", "SUSPENDED", "EXPIRED", "CONNECTED"),
    ]
    stop()
    await store.close()
    assert states[-1] is SessionState.CONNECTED


@with_fake
async def test_what_changes_before_the_first_look_is_told_if_that_was_lost(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    picture = Picture(server, "")
    client.hold()
    store.watch("/w", picture)
    await sleep(0)
    client.drop()
    server.multi(_made("/w", "/w/a"), 0)
    client.come_back()
    await store.get("/w")
    await store.get("/w")
    assert picture.known == {"/w": b"1", "/w/a": b"1"}


@with_fake
async def test_a_notification_whose_read_was_lost_is_read_again(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    picture = Picture(server, "")
    store.watch("/config/topics", picture)
    await store.get("/config/topics")
    read = client.get_async

    def held(path: str, watch: Any = None) -> Any:
        client.hold()
        return read(path, watch)

    client.get_async = held  # type: ignore[method-assign]
    server.multi(_made("/config/topics/t", "/config/changes/config_change_0000000000"), 0)
    server.nodes[
        "/config/changes/config_change_0000000000"
    ].value = b'{"version":2,"entity_path":"topics/t"}'
    while not client._held:
        await sleep(0)
    client.get_async = read  # type: ignore[method-assign]
    client.drop()
    client.come_back()
    await store.get("/config")
    await store.get("/config")
    assert picture.known == {"/config/topics/t": b"1"}


@with_fake
async def test_events_of_a_child_that_is_made_again_between_two_looks(
    server: FakeZooKeeper, client: FakeClient, store: ZooKeeperStore
) -> None:
    heard: list[NodeEvent] = []
    await store.create("/w/a", b"1")
    store.watch("/w", heard.extend)
    await store.get("/w")
    client.drop()
    server.multi(_recreate("/w/a"), 0)
    client.come_back()
    await store.get("/w")
    await store.get("/w")
    assert [event.change for event in heard if event.path == "/w/a"] == [NodeChange.CHANGED]


def _made(*paths: str) -> list[Any]:
    from kazoo.protocol import serialization

    return [serialization.Create(path, b"1", (), 0) for path in paths]


def _recreate(path: str) -> list[Any]:
    from kazoo.protocol import serialization

    return [serialization.Delete(path, -1), serialization.Create(path, b"1", (), 0)]
