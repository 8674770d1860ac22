"""Every metadata store keeps one contract: the embedded one, and ZooKeeper's, real and fake.

The real ones are a server that stands alone and an ensemble of three, whose sessions are with any
of its servers.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeChange,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    StoredNode,
    StoreUnavailableError,
    VersionMismatchError,
)
from broker.zookeeper import session
from storage.waits import Work
from tests.support.fake_zookeeper import FakeZooKeeper
from tests.support.stores import open_store
from tests.support.zookeeper import Ensemble, ZooKeeper
from tests.support.zookeeper_stores import Hearing, open_zookeeper_store, run_on_loop

Opener = Callable[[], Work[MetadataStore]]
Run = Callable[[Callable[[MetadataStore], Work[None]]], None]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("ensemble")) as servers:
        yield servers


REAL = pytest.mark.integration


@pytest.fixture(
    params=[
        "embedded",
        "fake",
        pytest.param("zookeeper", marks=REAL),
        pytest.param("ensemble", marks=REAL),
    ]
)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a scenario with an empty store."""
    if request.param == "embedded":
        opener: Opener = open_store
    elif request.param == "fake":
        monkeypatch.setattr(session, "_new_client", FakeZooKeeper().client)
        opener = lambda: open_zookeeper_store("fake/x")  # noqa: E731
    else:
        server: ZooKeeper | Ensemble = request.getfixturevalue(request.param)
        opener = lambda: open_zookeeper_store(f"{server.connect}/c{next(_numbers)}/x")  # noqa: E731

    def run_scenario(scenario: Callable[[MetadataStore], Work[None]]) -> None:
        async def whole() -> None:
            store = await opener()
            try:
                await scenario(store)
                if isinstance(store, EmbeddedStore):
                    store._tree._check()
            finally:
                await store.close()

        run_on_loop(whole())

    return run_scenario


def on_each(scenario: Callable[[MetadataStore], Work[None]]) -> Callable[[Run], None]:
    """A test that gets an empty store of each kind."""
    return lambda run: run(scenario)


def value_of(node: StoredNode | None) -> tuple[bytes, int] | None:
    return None if node is None else (node.value, node.version)


@on_each
async def test_nodes_are_made_read_changed_and_deleted(store: MetadataStore) -> None:
    await store.create("/a/b", b"1")
    assert value_of(await store.get("/a/b")) == (b"1", 0)
    assert value_of(await store.get("/a")) == (b"", 0)
    assert await store.put("/a/b", b"2") == 1
    assert await store.put("/a/b", b"3", version=1) == 2
    await store.apply([Create("/a/a"), Create("/a/ä", "ü".encode())])
    assert await store.children("/a") == ["a", "b", "ä"]
    assert await store.children("/nowhere") == []
    found = await store.get_many(["/a/b", "/nowhere", "/a/a", "/a/ä"])
    assert [value_of(node) for node in found] == [
        (b"3", 2),
        None,
        (b"", 0),
        ("ü".encode(), 0),
    ]
    await store.delete("/a/b", version=2)
    assert await store.get("/a/b") is None
    await store.apply([])


@on_each
async def test_apply_is_all_or_nothing(store: MetadataStore) -> None:
    await store.create("/a", b"1")
    with pytest.raises(VersionMismatchError) as caught:
        await store.apply([Create("/b", b"2"), Put("/a", b"3", version=7)])
    assert caught.value.path == "/a"
    assert await store.get("/b") is None
    assert value_of(await store.get("/a")) == (b"1", 0)
    await store.apply([Create("/b/c", b"2"), Put("/b/c", b"3"), Delete("/a")])
    assert value_of(await store.get("/b/c")) == (b"3", 1)
    assert await store.get("/a") is None


@on_each
async def test_what_the_tree_refuses(store: MetadataStore) -> None:
    await store.create("/a/b")
    for error, path, operation in (
        (NodeExistsError, "/a/b", Create("/a/b")),
        (NodeMissingError, "/x", Put("/x", b"")),
        (NodeMissingError, "/x", Delete("/x")),
        (NodeMissingError, "/x", Check("/x")),
        (NodeNotEmptyError, "/a", Delete("/a")),
        (VersionMismatchError, "/a/b", Delete("/a/b", 3)),
        (VersionMismatchError, "/a/b", Check("/a/b", 3)),
    ):
        with pytest.raises(error) as caught:
            await store.apply([operation])
        assert caught.value.path == path


@on_each
async def test_recursive_deletion_takes_all_below_and_may_find_nothing(
    store: MetadataStore,
) -> None:
    await store.apply([Delete("/nothing", recursive=True)])
    await store.apply([Create(f"/a/b/{number}/c") for number in range(10)])
    await store.apply([Create("/a/c/d"), Delete("/a", recursive=True), Create("/a/new")])
    assert await store.children("/a") == ["new"]
    await store.create("/b", b"1")
    with pytest.raises(VersionMismatchError):
        await store.apply([Delete("/b", version=4, recursive=True)])


@on_each
async def test_a_check_fences(store: MetadataStore) -> None:
    await store.create("/epoch", b"1")
    await store.apply([Check("/epoch", 0), Create("/a")])
    await store.put("/epoch", b"2")
    with pytest.raises(VersionMismatchError) as caught:
        await store.apply([Check("/epoch", 0), Create("/b")])
    assert caught.value.path == "/epoch"
    assert await store.get("/b") is None
    await store.apply([Check("/epoch"), Create("/b")])


@on_each
async def test_sequential_nodes_are_numbered_by_the_children_made(store: MetadataStore) -> None:
    await store.apply([Create("/q/n_", b"0", sequential=True)])
    await store.create("/q/other")
    await store.apply([Create("/q/n_", sequential=True), Create("/q/m_", sequential=True)])
    assert await store.children("/q") == [
        "m_0000000003",
        "n_0000000000",
        "n_0000000002",
        "other",
    ]
    assert value_of(await store.get("/q/n_0000000000")) == (b"0", 0)
    await store.apply([Delete("/q/m_0000000003"), Delete("/q/n_0000000002")])
    await store.apply([Create("/q/", b"x", sequential=True)])
    assert "0000000004" in await store.children("/q")
    await store.apply([Delete("/q", recursive=True)])
    await store.apply([Create("/q/n_", sequential=True)])
    assert await store.children("/q") == ["n_0000000000"]


@on_each
async def test_each_of_many_is_made_or_refused_on_its_own(store: MetadataStore) -> None:
    await store.apply([Create("/epoch"), Create("/t/0", b"a"), Create("/t/1", b"b")])
    applied = await store.apply_each(
        [
            Put("/t/0", b"c", 0),
            Put("/t/1", b"d", 5),
            Create("/t/2/state", b"e"),
            Create("/t/0", b"f"),
            Delete("/t/7"),
            Delete("/t/8", recursive=True),
            Delete("/t/1", recursive=True),
        ],
        [Check("/epoch", 0)],
    )
    assert [type(one) for one in applied] == [
        int,
        VersionMismatchError,
        int,
        NodeExistsError,
        NodeMissingError,
        int,
        int,
    ]
    assert applied[0] == 1
    assert value_of(await store.get("/t/0")) == (b"c", 1)
    assert value_of(await store.get("/t/2/state")) == (b"e", 0)
    assert await store.children("/t") == ["0", "2"]
    assert await store.apply_each([]) == []


@on_each
async def test_a_check_that_fails_stops_each_of_many(store: MetadataStore) -> None:
    await store.apply([Create("/epoch"), Create("/t/0", b"a")])
    await store.put("/epoch", b"")
    for operations in ([Put("/t/0", b"b")], [Create("/t/a/b")], [Delete("/t", recursive=True)]):
        with pytest.raises(VersionMismatchError) as caught:
            await store.apply_each(operations, [Check("/epoch", 0)])
        assert caught.value.path == "/epoch"
    assert value_of(await store.get("/t/0")) == (b"a", 0)
    assert await store.children("/t") == ["0"]


@on_each
async def test_two_thousand_changes_in_their_order(store: MetadataStore) -> None:
    count = 2000
    made = await store.apply_each([Create(f"/t/{n}/state", b"0") for n in range(count)])
    assert made == [0] * count
    put = await store.apply_each([Put(f"/t/{n % 1000}/state", b"1") for n in range(count)])
    assert put == [1] * 1000 + [2] * 1000
    nodes = await store.get_many([f"/t/{n}/state" for n in range(count)])
    assert [node and node.version for node in nodes] == [2] * 1000 + [0] * 1000


@on_each
async def test_a_watch_hears_of_the_node_and_its_children(store: MetadataStore) -> None:
    heard = Hearing()
    stop = store.watch("/a", heard)
    assert await store.get("/a") is None
    await store.apply([Create("/a"), Create("/a/b", b"1"), Create("/ab")])
    assert heard.events == [("/a", NodeChange.CREATED), ("/a/b", NodeChange.CREATED)]
    heard.events.clear()
    await store.apply([Put("/a/b", b"2"), Put("/a", b"1"), Put("/ab", b"")])
    assert heard.events == [("/a/b", NodeChange.CHANGED), ("/a", NodeChange.CHANGED)]
    heard.events.clear()
    with pytest.raises(NodeMissingError):
        await store.apply([Create("/a/c"), Put("/nowhere", b"")])
    assert heard.events == []
    await store.apply([Delete("/a", recursive=True)])
    assert heard.events == [("/a/b", NodeChange.DELETED), ("/a", NodeChange.DELETED)]
    stop()
    stop()
    await store.create("/a")
    assert len(heard.events) == 2


@on_each
async def test_ephemeral_nodes_have_no_children_that_outlive_them(store: MetadataStore) -> None:
    await store.create("/ids/1", b"x", ephemeral=True)
    assert value_of(await store.get("/ids/1")) == (b"x", 0)
    assert await store.put("/ids/1", b"y") == 1


@on_each
async def test_a_closed_store_takes_nothing(store: MetadataStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await store.create("/after-close")
    if isinstance(store, EmbeddedStore):
        assert await store.get("/after-close") is None


async def test_an_embedded_store_goes_on_counting_above_what_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    store = await open_store(path)
    await store.apply([Create("/q/n_", sequential=True) for _ in range(3)])
    await store.apply([Delete("/q/n_0000000000")])
    await store.close()
    again = await open_store(path)
    await again.apply([Create("/q/n_", sequential=True)])
    assert await again.children("/q") == ["n_0000000001", "n_0000000002", "n_0000000003"]
