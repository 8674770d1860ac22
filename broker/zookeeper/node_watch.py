"""A watch of one node and its children, made of ZooKeeper's watches, which fire once each.

A `NodeWatch` uses three kinds of ZooKeeper's watches: for the node and its version, for the list of
its children, and for the version of each child. When one fires, the `NodeWatch` looks again, which
sets a new one, and reports the differences from its last look. The new look sees changes between
the two, so none is missed; several may be reported as one.

The first look reports nothing, because its watcher reads the path after it and ZooKeeper answers in
order. After a lost connection the `NodeWatch` looks at everything again and reports differences.

Loop only; requests are answered by callbacks, so nothing waits here.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from broker.cluster.metadata_store import NodeChange, NodeEvent, Watcher
from broker.zookeeper.operations import Tree
from broker.zookeeper.requests import Requests, is_loss

logger = logging.getLogger(__name__)

UNKNOWN_CREATION = -1
"""The `created` of a node that was made from here: ZooKeeper's answer does not contain it."""


class Seen(NamedTuple):
    """A node at the time of a look."""

    created: int
    version: int

    def change_to(self, now: "Seen") -> NodeChange | None:
        """The change between two looks that both found the node; None if there is none."""
        recreated = UNKNOWN_CREATION not in (self.created, now.created) and (
            self.created != now.created
        )
        return NodeChange.CHANGED if recreated or self.version != now.version else None


class NodeWatch:
    """Calls `watcher` with changes of the node at `path` and of its children."""

    def __init__(self, requests: Requests, tree: Tree, path: str, watcher: Watcher) -> None:
        self.path = path
        self._watcher = watcher
        self._requests = requests
        self._tree = tree
        self._has_ended = False
        self._is_loud = False
        """Whether even a first look reports the nodes that it finds."""
        self._node: Seen | None = None
        self._has_looked = False
        self._children: dict[str, Seen] = {}
        self._has_listed = False
        self._set: set[str] = set()
        """Children on which a watch is set."""
        # One object for all watches that are set: kazoo keeps one of equal ones for each path.
        self._fired_in_thread = partial(requests.hand_over_event, self._fired)

    def end(self) -> None:
        """Report nothing any more."""
        self._has_ended = True

    def look(self, *, again: bool = False) -> None:
        """Look at everything; `again`: the watches are gone, and changes may have been missed."""
        if again:
            self._is_loud = True
        self._look_at_node()
        self._list_children(everyone=again)

    # ---- changes that were made from here

    def note(self, events: Iterable[tuple[NodeEvent, int]]) -> None:
        """Report changes that were made from here, with the versions that the nodes have now."""
        told = []
        for event, version in events:
            if event.path == self.path:
                is_news = self._note_node(event, version)
            elif event.path.rpartition("/")[0] == self.path:
                is_news = self._note_child(event, version)
            else:
                continue
            if is_news:
                told.append(event)
        self._tell(told)

    def _note_node(self, event: NodeEvent, version: int) -> bool:
        """Return False if a watch of ZooKeeper has reported the change already."""
        before, had_looked = self._node, self._has_looked
        gone = event.change is NodeChange.DELETED
        self._node = None if gone else Seen(self._creation(before, event), version)
        self._has_looked = True
        return not (gone and had_looked and before is None)

    def _note_child(self, event: NodeEvent, version: int) -> bool:
        name = event.path.rpartition("/")[2]
        before = self._children.pop(name, None)
        gone = event.change is NodeChange.DELETED
        if not gone:
            self._children[name] = Seen(self._creation(before, event), version)
        return not (gone and self._has_listed and before is None)

    @staticmethod
    def _creation(known: Seen | None, event: NodeEvent) -> int:
        changed = event.change is NodeChange.CHANGED
        return known.created if known is not None and changed else UNKNOWN_CREATION

    # ---- looking

    def _look_at_node(self) -> None:
        full = self._tree.full(self.path)
        self._requests.send(partial(_look, full, self._fired_in_thread), self._node_looked_at)

    def _node_looked_at(self, stat: Any, error: BaseException | None) -> None:
        if self._is_over(error):
            return
        before, now = self._node, _seen(stat)
        self._node = now
        is_new = now is not None and (before is None or before.created != now.created)
        if is_new and self._has_looked:
            self._list_children()  # the watch of the list has gone with the node before
        if self._has_looked or self._is_loud:
            self._tell(_difference(self.path, before, now))
        self._has_looked = True

    def _list_children(self, *, everyone: bool = False) -> None:
        full, fired = self._tree.full(self.path), self._fired_in_thread
        self._requests.send(
            lambda client: client.get_children_async(full, watch=fired),
            partial(self._children_listed, everyone),
        )

    def _children_listed(
        self, everyone: bool, names: Sequence[str] | None, error: BaseException | None
    ) -> None:
        if error is not None and type(error).__name__ == "NoNodeError":
            names, error = (), None  # the watch of the node tells when it is made
        if self._is_over(error) or names is None:
            return
        found = set(names)
        gone = [name for name in self._children if name not in found]
        self._set.intersection_update(found)
        for name in gone:
            del self._children[name]
        events = [NodeEvent(f"{self.path}/{name}", NodeChange.DELETED) for name in gone]
        loud = self._is_loud or self._has_listed
        wanted = [name for name in names if everyone or name not in self._set]
        self._has_listed = True
        if wanted:
            self._look_at_children(sorted(wanted), events, loud=loud)
        else:
            self._tell(events)

    def _look_at_children(
        self, names: Sequence[str], events: list[NodeEvent], *, loud: bool
    ) -> None:
        """Look at children; after the last, report `events` and the differences."""
        left = len(names)

        def looked_at(name: str, stat: Any, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if not self._is_over(error):
                events.extend(self._child_seen(name, _seen(stat), loud=loud))
            if not left:
                self._tell(events)

        fired = self._fired_in_thread
        for name in names:
            self._set.add(name)
            full = self._tree.full(f"{self.path}/{name}")
            self._requests.send(partial(_look, full, fired), partial(looked_at, name))

    def _child_seen(self, name: str, now: Seen | None, *, loud: bool) -> list[NodeEvent]:
        before = self._children.pop(name, None)
        if now is not None:
            self._children[name] = now
        else:
            self._set.discard(name)
        if before is None and not loud:
            return []
        return _difference(f"{self.path}/{name}", before, now)

    # ---- watches that fire

    def _fired(self, event: Any) -> None:
        """A watch has fired, and is gone."""
        if self._has_ended or event.path is None:  # None: all are gone, with the connection
            return
        path = self._tree.own(event.path)
        if path != self.path:
            name = path.rpartition("/")[2]
            if event.type == "DELETED":  # made again, it is found by the list of children
                self._tell(self._child_seen(name, None, loud=True))
            else:
                self._look_at_children([name], [], loud=True)
        elif event.type == "CHILD":
            self._list_children()
        else:
            self._look_at_node()

    def _is_over(self, error: BaseException | None) -> bool:
        """Whether an answer is of no use; after a loss of the connection, `look` comes again."""
        if error is not None and not self._has_ended and not is_loss(error):
            logger.error("%s cannot be watched: %s", self.path, error or type(error).__name__)
        return self._has_ended or error is not None

    def _tell(self, events: Sequence[NodeEvent]) -> None:
        if events and not self._has_ended:
            self._watcher(events)


def _look(full: str, fired: Callable[[Any], None], client: Any) -> Any:
    return client.exists_async(full, watch=fired)


def _seen(stat: Any) -> Seen | None:
    return None if stat is None else Seen(stat.czxid, stat.version)


def _difference(path: str, before: Seen | None, now: Seen | None) -> list[NodeEvent]:
    if before is None and now is None:
        return []
    if before is None:
        return [NodeEvent(path, NodeChange.CREATED)]
    if now is None:
        return [NodeEvent(path, NodeChange.DELETED)]
    change = before.change_to(now)
    return [] if change is None else [NodeEvent(path, change)]
