import subprocess
import sys
from pathlib import Path

import pytest
import trio

from broker.cluster.embedded_store import EmbeddedStore
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


def test_nodes_survive_a_restart_and_ephemeral_ones_do_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = str(tmp_path / "metadata.sqlite")
        store = await EmbeddedStore.open(path)
        assert store.fresh
        await store.create("/a/b", b"1")
        assert await store.put("/a/b", b"2") == 1
        await store.create("/live/0", b"x", ephemeral=True)
        await store.close()
        await store.close()
        again = await EmbeddedStore.open(path)
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
        store = await EmbeddedStore.open(":memory:")
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
        store = await EmbeddedStore.open(":memory:")
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
        store = await EmbeddedStore.open(":memory:")
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
        store = await EmbeddedStore.open(path)
        for number in range(5):
            with trio.move_on_after(0 if number % 2 else 1):
                await store.create(f"/n{number}")
        names = await store.children("")
        await store.close()
        again = await EmbeddedStore.open(path)
        assert await again.children("") == names
        await again.close()

    trio.run(scenario)


def test_a_closed_or_foreign_file_is_told_plainly(tmp_path: Path) -> None:
    async def scenario() -> None:
        foreign = tmp_path / "foreign"
        foreign.write_bytes(b"not a database, but long enough to be looked at" * 50)
        with pytest.raises(MetadataStoreError, match="cannot be used"):
            await EmbeddedStore.open(str(foreign))
        newer = tmp_path / "newer"
        store = await EmbeddedStore.open(str(newer))
        store._database.execute("PRAGMA user_version=9")
        await store.close()
        with pytest.raises(MetadataStoreError, match="layout 9"):
            await EmbeddedStore.open(str(newer))
        with pytest.raises(StoreUnavailableError):
            await store.create("/after-close")
        assert await store.get("/after-close") is None

    trio.run(scenario)


_WRITER = """
import os, signal, sys, trio
from broker.cluster.embedded_store import EmbeddedStore
async def main():
    store = await EmbeddedStore.open(sys.argv[1])
    for n in range(1000):
        await store.create(f"/n/{n}", b"x" * 100)
        if n == 20:
            print("ready", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
trio.run(main)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    process = subprocess.run(
        [sys.executable, "-c", _WRITER, path], capture_output=True, text=True, check=False
    )
    assert process.stdout == "ready\n", process.stderr

    async def scenario() -> None:
        store = await EmbeddedStore.open(path)
        assert len(await store.children("/n")) == 21
        assert await store.get("/n/20") == StoredNode(b"x" * 100, 0)
        await store.close()

    trio.run(scenario)
