from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    StoredNode,
    StoreUnavailableError,
    VersionMismatchError,
)
from storage.waits import at_once, together
from tests.support.driving import drive, driver
from tests.support.stores import open_store


def test_nodes_survive_a_restart_and_ephemeral_ones_do_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = str(tmp_path / "metadata.sqlite")
        store = await open_store(path)
        assert store.fresh
        await store.create("/a/b", b"1")
        assert await store.put("/a/b", b"2") == 1
        await store.create("/live/0", b"x", ephemeral=True)
        await store.close()
        await store.close()
        again = await open_store(path)
        assert not again.fresh
        assert await again.get("/a/b") == StoredNode(b"2", 1)
        assert await again.get("/a") == StoredNode(b"", 0)
        assert await again.children("/a") == ["b"]
        assert await again.get("/live/0") is None
        assert await again.get("/live") is not None
        again._tree._check()
        await again.close()

    at_once(scenario())


def test_apply_is_all_or_nothing() -> None:
    async def scenario() -> None:
        store = await open_store()
        await store.create("/a", b"1")
        with pytest.raises(VersionMismatchError):
            await store.apply([Create("/b", b"2"), Put("/a", b"3", version=7)])
        assert await store.get("/b") is None
        assert await store.get("/a") == StoredNode(b"1", 0)
        await store.apply([Create("/b/c", b"2"), Put("/b/c", b"3"), Delete("/a")])
        assert await store.get("/b/c") == StoredNode(b"3", 1)
        assert await store.get("/a") is None
        store._tree._check()
        await store.close()

    at_once(scenario())


def test_what_the_tree_refuses() -> None:
    async def scenario() -> None:
        store = await open_store()
        await store.create("/a/b")
        with pytest.raises(NodeExistsError):
            await store.create("/a/b")
        with pytest.raises(NodeMissingError):
            await store.put("/x", b"")
        with pytest.raises(NodeMissingError):
            await store.delete("/x")
        with pytest.raises(NodeNotEmptyError):
            await store.delete("/a")
        await store.apply([Delete("/nothing", recursive=True)])
        await store.apply([Create("/a/c/d"), Delete("/a", recursive=True)])
        assert await store.children("") == []
        store._tree._check()
        await store.close()

    at_once(scenario())


def test_a_watch_hears_of_the_node_and_all_below_in_the_order_of_the_changes() -> None:
    async def scenario() -> None:
        store = await open_store()
        heard: list[list[tuple[str, NodeChange]]] = []
        stop = store.watch("/a", lambda events: heard.append([tuple(event) for event in events]))
        await store.apply([Create("/a/b/c", b"1"), Create("/ab"), Put("/ab", b"1")])
        assert heard == [
            [
                ("/a", NodeChange.CREATED),
                ("/a/b", NodeChange.CREATED),
                ("/a/b/c", NodeChange.CREATED),
            ]
        ]
        heard.clear()
        await store.put("/ab", b"2")
        assert heard == []
        await store.apply([Put("/a/b/c", b"2"), Put("/a", b"1")])
        await store.apply([Delete("/a", recursive=True)])
        assert heard == [
            [("/a/b/c", NodeChange.CHANGED), ("/a", NodeChange.CHANGED)],
            [
                ("/a/b/c", NodeChange.DELETED),
                ("/a/b", NodeChange.DELETED),
                ("/a", NodeChange.DELETED),
            ],
        ]
        stop()
        stop()
        await store.create("/a")
        assert len(heard) == 2
        await store.close()

    at_once(scenario())


def test_a_watch_is_told_before_the_writer_goes_on_and_finds_what_was_written() -> None:
    async def scenario() -> None:
        store = await open_store()
        heard: list[str] = []

        def watcher(events: Sequence[NodeEvent]) -> None:
            heard.extend(event.path for event in events)

        store.watch("/a", watcher)

        async def write(name: str) -> None:
            await store.apply([Create(f"/a/{name}/{number}") for number in range(1500)])
            assert f"/a/{name}/1499" in heard

        await together(write("x"), write("y"))
        runs = [path.split("/")[2] for path in heard if path.count("/") == 3]
        assert runs in (["x"] * 1500 + ["y"] * 1500, ["y"] * 1500 + ["x"] * 1500)
        some = await store.get_many(["/a/x/7", "/nowhere", "/a"])
        assert some == [StoredNode(b"", 0), None, StoredNode(b"", 0)]
        await store.close()

    drive(scenario())


def test_a_change_that_failed_is_not_told() -> None:
    async def scenario() -> None:
        store = await open_store()
        heard: list[object] = []
        store.watch("/a", heard.append)
        with pytest.raises(NodeMissingError):
            await store.apply([Create("/a/b"), Put("/nowhere", b"")])
        assert heard == []
        await store.close()

    at_once(scenario())


def test_a_cancelled_writer_leaves_memory_and_disk_in_step(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = str(tmp_path / "m.sqlite")
        run = driver().run
        store = await run(open_store(path))
        for number in range(5):
            with trio.move_on_after(0 if number % 2 else 1):
                await run(store.create(f"/n{number}"))
        names = await run(store.children(""))
        await run(store.close())
        again = await run(open_store(path))
        assert await run(again.children("")) == names
        await run(again.close())

    trio.run(scenario)


def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await open_store(str(tmp_path / "m.sqlite"))
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await store.create("/after-close")
        assert await store.get("/after-close") is None

    at_once(scenario())


def test_a_medium_that_cannot_be_used_is_told_plainly(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(MetadataStoreError, match="cannot be used"):
        at_once(open_store(str(foreign)))
