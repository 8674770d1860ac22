"""A watch of a tree that has a notification log (`change_logs`): the log's children are watched.

Notifications are read in the order of their numbers, each once. Watchers get each as a change of
the node that it names, and read that node themselves. As in Kafka, notifications that are there at
the start count too, because a change may have been made between a read and the watch.

ZooKeeper numbers the children of a node without gaps. So when numbers are missing, notifications
were made and removed while this broker was away, longer than they are kept; then watchers get a
change of every node of their trees.

Each broker that reads new notifications removes old ones. Their age is measured by the newest one's
time, which is ZooKeeper's, not by the clock of this machine.

Source: `kafka.common.ZkNodeChangeNotificationListener` (3.9).
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from broker.cluster.metadata_store import NodeChange, NodeEvent, Watcher
from broker.zookeeper.change_logs import EXPIRES_AFTER_MS, ChangeLog
from broker.zookeeper.operations import Tree
from broker.zookeeper.requests import Requests, is_loss

logger = logging.getLogger(__name__)


class LogWatch:
    """Follows one log for all watchers of its tree. Loop only."""

    def __init__(self, requests: Requests, tree: Tree, log: ChangeLog) -> None:
        self._requests = requests
        self._tree = tree
        self._log = log
        self._watchers: list[tuple[str, Watcher]] = []
        self._last_asked = -1
        self._last_told = -1
        """Numbers of notifications."""
        self._ages: dict[str, int] = {}
        """When each notification that was read here, and still exists, was made: milliseconds of
        ZooKeeper's clock."""
        self._fired_in_thread = partial(requests.hand_over_event, self._fired)

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for the nodes at `path` and below, until the result is called."""
        watch = (path, watcher)
        self._watchers.append(watch)
        if len(self._watchers) == 1:
            self.look()

        def unwatch() -> None:
            if watch in self._watchers:
                self._watchers.remove(watch)

        return unwatch

    def look(self) -> None:
        """Read new notifications; also after the watches are gone. Do nothing without watchers."""
        if not self._watchers:
            return
        self._last_asked = self._last_told
        self._list_again()

    def note(self, events: Sequence[NodeEvent]) -> None:
        """Report changes that were made from here; their notifications report them again."""
        self._tell(events)

    def _fired(self, event: Any) -> None:
        if event.path is None or not self._watchers:
            return
        if event.type == "DELETED":
            self._await_root()
        else:
            self._list_again()

    def _list_again(self) -> None:
        root, fired = self._tree.full(self._log.root), self._fired_in_thread
        self._requests.send(
            lambda client: client.get_children_async(root, watch=fired), self._listed
        )

    def _await_root(self) -> None:
        """Watch for the log's node, which is made with the first notification."""
        self._last_asked = self._last_told = -1
        self._ages.clear()
        root, fired = self._tree.full(self._log.root), self._fired_in_thread
        self._requests.send(
            lambda client: client.exists_async(root, watch=fired),
            lambda stat, error: self._list_again() if stat is not None else None,
        )

    def _listed(self, names: Sequence[str] | None, error: BaseException | None) -> None:
        if error is not None and type(error).__name__ == "NoNodeError":
            self._await_root()
            return
        if error is not None or names is None:
            self._complain(error)
            return
        there = set(names)
        self._ages = {name: made for name, made in self._ages.items() if name in there}
        numbered = sorted(
            (number, name)
            for name in names
            if (number := self._log.number(name)) is not None and number > self._last_asked
        )
        if not numbered:
            return
        missed = self._last_asked >= 0 and numbered[0][0] > self._last_asked + 1
        self._last_asked = numbered[-1][0]
        if missed:
            logger.warning("Changes of %s were missed: all is read again", self._log.tree)
            self._tell_everything()
        self._read(numbered)

    def _read(self, numbered: Sequence[tuple[int, str]]) -> None:
        left = len(numbered)
        found: dict[int, bytes] = {}
        lost = False

        def read(number: int, name: str, answer: Any, error: BaseException | None) -> None:
            nonlocal left, lost
            left -= 1
            if error is None:
                value, stat = answer
                found[number] = value or b""
                self._ages[name] = stat.ctime
            elif type(error).__name__ != "NoNodeError":  # removed: somebody has just done it
                lost = True
                self._complain(error)
            if not left and not lost:
                self._was_read(numbered[-1][0], [found[number] for number in sorted(found)])

        for number, name in numbered:
            full = self._tree.full(f"{self._log.root}/{name}")
            self._requests.send(partial(_get, full), partial(read, number, name))

    def _was_read(self, last: int, values: Sequence[bytes]) -> None:
        self._last_told = max(self._last_told, last)
        paths: dict[str, None] = {}
        for value in values:
            path = self._log.decode(value)
            if path is None:
                logger.error("A notification in %s cannot be read: %r", self._log.root, value)
            else:
                paths[path] = None
        self._tell([NodeEvent(path, NodeChange.CHANGED) for path in paths])
        self._remove_old()

    def _remove_old(self) -> None:
        if not self._ages:
            return
        oldest = max(self._ages.values()) - EXPIRES_AFTER_MS
        for name in [name for name, made in self._ages.items() if made < oldest]:
            del self._ages[name]
            self._requests.send(
                partial(_delete, self._tree.full(f"{self._log.root}/{name}")),
                _ignore,  # another broker may have been faster; if it failed, others try again
            )

    # ---- everything, when notifications were missed

    def _tell_everything(self) -> None:
        for path in dict.fromkeys(path for path, _ in self._watchers):
            self._tell_below(path)

    def _tell_below(self, path: str) -> None:
        full = self._tree.full(path)

        def listed(names: Sequence[str] | None, error: BaseException | None) -> None:
            if error is not None:
                self._complain(error)
            for name in names or ():
                below = f"{path}/{name}"
                if self._log.has(below):
                    self._tell([NodeEvent(below, NodeChange.CHANGED)])
                    self._tell_below(below)

        self._requests.send(lambda client: client.get_children_async(full), listed, repeatable=True)

    def _complain(self, error: BaseException | None) -> None:
        if error is not None and not is_loss(error) and type(error).__name__ != "NoNodeError":
            logger.error("%s cannot be followed: %s", self._log.root, error)

    def _tell(self, events: Sequence[NodeEvent]) -> None:
        for path, watcher in tuple(self._watchers):
            below = path + "/"
            told = [e for e in events if e.path == path or e.path.startswith(below)]
            if told:
                watcher(told)


def _get(full: str, client: Any) -> Any:
    return client.get_async(full)


def _delete(full: str, client: Any) -> Any:
    return client.delete_async(full)


def _ignore(_: Any, __: BaseException | None) -> None:
    pass
