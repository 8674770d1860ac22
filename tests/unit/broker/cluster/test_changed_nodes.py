"""Nodes that have changed in the tree are read again, also after a read that failed."""

import pytest

from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import StoredNode, StoreUnavailableError
from broker.cluster.tree_values import BadValueError
from storage.waits import at_once
from tests.support.stores import Ended, open_unreachable_store


class Room:
    """Keeps what the nodes below /a hold."""

    def __init__(self) -> None:
        self.store = store = at_once(open_unreachable_store())
        self.read: list[tuple[str, bytes | None]] = []
        self.ends_with: bytes | None = None
        self.changed = ChangedNodes(
            store,
            ["/a"],
            what="Things",
            node_of=lambda path: path if path.count("/") == 2 else None,
            apply=self._apply,
        )

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        value = None if node is None else node.value
        if value == b"bad":
            raise BadValueError(path, "bad")
        self.read.append((path, value))
        if value is not None and value == self.ends_with:
            raise Ended


async def test_each_change_is_read_once_and_a_bad_one_holds_up_none() -> None:
    room = Room()
    await room.store.create("/a/1", b"bad")
    await room.store.create("/a/2", b"x")
    await room.store.put("/a/2", b"y")
    await room.store.create("/a/2/below", b"z")
    await room.store.create("/a/3")
    await room.store.delete("/a/3")
    await room.changed.catch_up()
    await room.changed.catch_up()
    assert room.read == [("/a/2", b"y"), ("/a/3", None)]


async def test_a_store_that_does_not_answer_is_asked_again() -> None:
    room = Room()
    await room.store.create("/a/1", b"x")
    room.store.failures, room.ends_with = 4, b"x"
    with pytest.raises(StoreUnavailableError):
        await room.changed.catch_up()
    await room.changed.catch_up_if_possible()
    assert room.read == []
    with pytest.raises(Ended):
        await room.changed.run()
    assert room.store.failures == 0


async def test_a_reader_that_ends_leaves_the_changes_to_the_next() -> None:
    room = Room()
    await room.store.create("/a/1", b"x")
    reading = room.changed.catch_up()
    reading.send(None)
    await room.store.put("/a/1", b"y")
    reading.close()
    await room.changed.catch_up()
    assert room.read == [("/a/1", b"y")]


async def test_nobody_has_to_wait_for_another_one_who_reads() -> None:
    room = Room()
    await room.store.create("/a/1", b"x")
    reading = room.changed.catch_up()
    reading.send(None)
    await room.store.create("/a/2", b"y")
    await room.changed.catch_up_unless_under_way()
    assert room.read == []
    with pytest.raises(StopIteration):
        while True:
            reading.send(None)
    await room.changed.catch_up_unless_under_way()
    assert room.read == [("/a/1", b"x"), ("/a/2", b"y")]
