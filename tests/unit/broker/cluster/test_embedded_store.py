from pathlib import Path

import pytest
import trio

from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    StoredNode,
    StoreUnavailableError,
    VersionMismatchError,
)
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

    trio.run(scenario)


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

    trio.run(scenario)


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

    trio.run(scenario)


def test_watches_hear_of_the_node_and_its_children() -> None:
    async def scenario() -> None:
        store = await open_store()
        heard: list[tuple[str, NodeChange]] = []
        stop = store.watch("/a", lambda path, change: heard.append((path, change)))
        await store.create("/a/b")
        assert heard == [("/a", NodeChange.CREATED), ("/a", NodeChange.CHILDREN)]
        heard.clear()
        await store.put("/a", b"1")
        await store.put("/a/b", b"1")
        await store.delete("/a/b")
        assert heard == [("/a", NodeChange.CHANGED), ("/a", NodeChange.CHILDREN)]
        stop()
        stop()
        await store.delete("/a")
        assert len(heard) == 2
        await store.close()

    trio.run(scenario)


def test_a_cancelled_writer_leaves_memory_and_disk_in_step(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = str(tmp_path / "m.sqlite")
        store = await open_store(path)
        for number in range(5):
            with trio.move_on_after(0 if number % 2 else 1):
                await store.create(f"/n{number}")
        names = await store.children("")
        await store.close()
        again = await open_store(path)
        assert await again.children("") == names
        await again.close()

    trio.run(scenario)


def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await open_store(str(tmp_path / "m.sqlite"))
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await store.create("/after-close")
        assert await store.get("/after-close") is None

    trio.run(scenario)


def test_a_medium_that_cannot_be_used_is_told_plainly(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(MetadataStoreError, match="cannot be used"):
        trio.run(open_store, str(foreign))
