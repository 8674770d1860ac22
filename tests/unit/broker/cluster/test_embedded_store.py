"""The store in a file; what all stores promise is in `test_store_contract.py`."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    Put,
    StoredNode,
)
from storage.waits import at_once, together
from tests.support.driving import RunWork
from tests.support.stores import open_store


async def test_nodes_survive_a_restart_and_ephemeral_ones_do_not(tmp_path: Path) -> None:
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


async def test_a_watch_hears_of_all_below_in_the_order_of_the_changes(store: EmbeddedStore) -> None:
    heard: list[list[tuple[str, NodeChange]]] = []
    store.watch("/a", lambda events: heard.append([tuple(event) for event in events]))
    await store.apply([Create("/a/b/c", b"1"), Create("/ab")])
    await store.apply([Put("/a/b/c", b"2"), Put("/a", b"1")])
    await store.apply([Delete("/a", recursive=True)])
    made, changed, gone = NodeChange.CREATED, NodeChange.CHANGED, NodeChange.DELETED
    assert heard == [
        [("/a", made), ("/a/b", made), ("/a/b/c", made)],
        [("/a/b/c", changed), ("/a", changed)],
        [("/a/b/c", gone), ("/a/b", gone), ("/a", gone)],
    ]


async def test_a_watch_hears_before_the_writer_goes_on_and_finds_what_was_written(
    driven: None, store: EmbeddedStore
) -> None:
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


async def test_a_cancelled_writer_leaves_memory_and_disk_in_step(
    run_work: RunWork, tmp_path: Path
) -> None:
    path = str(tmp_path / "m.sqlite")
    store = await run_work(open_store(path))
    for number in range(5):
        with trio.move_on_after(0 if number % 2 else 1):
            await run_work(store.create(f"/n{number}"))
    names = await run_work(store.children(""))
    await run_work(store.close())
    again = await run_work(open_store(path))
    assert await run_work(again.children("")) == names
    await run_work(again.close())


def test_a_medium_that_cannot_be_used_is_told_plainly(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(MetadataStoreError, match="cannot be used"):
        at_once(open_store(str(foreign)))
