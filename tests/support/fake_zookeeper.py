"""ZooKeeper in memory, and the part of kazoo's client that `broker.zookeeper` uses.

    server = FakeZooKeeper()
    monkeypatch.setattr(session, "_new_client", server.client)
    client = server.clients[0]
    client.drop(); client.come_back(); client.expire()

Requests are done at once, in their order, and answered at once, unless the test has called `hold`:
then they wait until the client is dropped, which loses their answers and perhaps the requests
too. The rules of the tree are ZooKeeper's; the contract tests run on both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.protocol.serialization import CheckVersion, Create, Delete, GetData, SetData
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from broker.zookeeper.settings import ZooKeeperSettings

Watch = Callable[[WatchedEvent], None]


@dataclass(slots=True)
class _Node:
    value: bytes | None
    created: int
    made_ms: int
    owner: int = 0
    version: int = 0
    children_made: int = 0


@dataclass(slots=True)
class _Watches:
    nodes: dict[str, list[Watch]] = field(default_factory=dict)
    children: dict[str, list[Watch]] = field(default_factory=dict)


class FakeZooKeeper:
    """The server."""

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {"/": _Node(None, 0, 0)}
        self.clients: list[FakeClient] = []
        self.now_ms = 1_000_000
        self._zxid = 0
        self._sessions = 0

    def client(self, settings: ZooKeeperSettings, listen: Callable[[str], None]) -> "FakeClient":
        """In place of `session._new_client`."""
        client = FakeClient(self, listen)
        self.clients.append(client)
        return client

    def new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def end_session(self, session_id: int) -> None:
        """Remove what belongs to a session."""
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self._fire(self._delete(path))

    def names_below(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [
            other[len(prefix) :]
            for other in self.nodes
            if other.startswith(prefix) and "/" not in other[len(prefix) :] and other != "/"
        ]

    def multi(self, operations: Sequence[Any], session_id: int) -> list[Any]:
        """All or none; results as kazoo has them."""
        before = {path: _copy(node) for path, node in self.nodes.items()}
        self._zxid += 1
        results: list[Any] = []
        events: list[tuple[str, str]] = []
        for at, operation in enumerate(operations):
            try:
                results.append(self._apply(operation, session_id, events))
            except KazooException as error:
                self.nodes = before
                later = len(operations) - at - 1
                return [RolledBackError()] * at + [error] + [RuntimeInconsistency()] * later
        self._fire(events)
        return results

    def _apply(self, operation: Any, session_id: int, events: list[tuple[str, str]]) -> Any:
        match operation:
            case Create():
                return self._create(operation, session_id, events)
            case SetData():
                node = self._expect(operation.path, operation.version)
                node.value, node.version = operation.data, node.version + 1
                events.append(("CHANGED", operation.path))
                return self.stat(operation.path)
            case Delete():
                self._expect(operation.path, operation.version)
                if self.names_below(operation.path):
                    raise NotEmptyError
                events += self._delete(operation.path)
                return True
            case CheckVersion():
                self._expect(operation.path, operation.version)
                return True
        raise AssertionError(operation)

    def _create(self, operation: Any, session_id: int, events: list[tuple[str, str]]) -> str:
        path: str = operation.path
        parent = path.rpartition("/")[0] or "/"
        if parent not in self.nodes:
            raise NoNodeError
        if operation.flags & 2:
            path += f"{self.nodes[parent].children_made:010d}"
        if path in self.nodes:
            raise NodeExistsError
        self.nodes[parent].children_made += 1
        owner = session_id if operation.flags & 1 else 0
        self.nodes[path] = _Node(operation.data, self._zxid, self.now_ms, owner)
        events += [("CREATED", path), ("CHILD", parent)]
        return path

    def _delete(self, path: str) -> list[tuple[str, str]]:
        del self.nodes[path]
        return [("DELETED", path), ("CHILD", path.rpartition("/")[0] or "/")]

    def _expect(self, path: str, version: int) -> _Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError
        if version not in (-1, node.version):
            raise BadVersionError
        return node

    def _fire(self, events: Sequence[tuple[str, str]]) -> None:
        for kind, path in events:
            for client in self.clients:
                client.fire(kind, path)

    def stat(self, path: str) -> ZnodeStat | None:
        node = self.nodes.get(path)
        if node is None:
            return None
        below = len(self.names_below(path))
        return ZnodeStat(
            *(node.created, node.created, node.made_ms, node.made_ms, node.version),
            *(node.children_made, 0, node.owner, len(node.value or b""), below, node.created),
        )


def _copy(node: _Node) -> _Node:
    return _Node(
        *(node.value, node.created, node.made_ms, node.owner, node.version, node.children_made)
    )


class _Result:
    """kazoo's asynchronous result."""

    def __init__(self) -> None:
        self.value: Any = None
        self.exception: BaseException | None = None
        self._is_set = False
        self._linked: list[Callable[[Any], None]] = []

    def rawlink(self, callback: Callable[[Any], None]) -> None:
        self._linked.append(callback)
        if self._is_set:
            callback(self)

    def answer(self, value: Any, error: BaseException | None = None) -> None:
        self.value, self.exception, self._is_set = value, error, True
        for callback in self._linked:
            callback(self)


class _Transaction:
    def __init__(self, client: "FakeClient") -> None:
        self.operations: list[Any] = []
        self._client = client

    def commit_async(self) -> _Result:
        client = self._client
        return client.ask(lambda: client.server.multi(self.operations, client.session_id))


class FakeClient:
    """`KazooClient`."""

    def __init__(self, server: FakeZooKeeper, listen: Callable[[str], None]) -> None:
        self.server = server
        self.handler = self
        self.session_id = 0
        self.is_connected = False
        self.holds = False
        self._listen = listen
        self._held: list[tuple[Callable[[], Any], _Result]] = []
        self._watches = _Watches()

    # ---- called by the broker

    @property
    def client_id(self) -> tuple[int, bytes]:
        return self.session_id, b""

    def start_async(self) -> None:
        self.session_id = self.server.new_session()
        self.is_connected = True
        self._listen("CONNECTED")

    def stop(self) -> None:
        self.is_connected = False
        self.server.end_session(self.session_id)
        self.server.clients.remove(self)

    def close(self) -> None:
        pass

    def transaction(self) -> _Transaction:
        return _Transaction(self)

    def async_result(self) -> _Result:
        return _Result()

    def _call(self, request: Any, result: _Result) -> None:
        """A `MultiRead`."""

        def read() -> list[Any]:
            answers = []
            for operation in request.operations:
                reading = self._value if isinstance(operation, GetData) else self._names
                try:
                    answers.append(reading(operation.path, None))
                except KazooException as error:
                    answers.append(error)
            return answers

        self.ask(read, result)

    def get_async(self, path: str, watch: Watch | None = None) -> _Result:
        return self.ask(lambda: self._value(path, watch))

    def exists_async(self, path: str, watch: Watch | None = None) -> _Result:
        def exists() -> ZnodeStat | None:
            self._set(self._watches.nodes, path, watch)
            return self.server.stat(path)

        return self.ask(exists)

    def get_children_async(self, path: str, watch: Watch | None = None) -> _Result:
        return self.ask(lambda: self._names(path, watch))

    def delete_async(self, path: str) -> _Result:
        def delete() -> bool:
            (result,) = self.server.multi([Delete(path, -1)], self.session_id)
            if isinstance(result, BaseException):
                raise result
            return True

        return self.ask(delete)

    # ---- called by a test

    def drop(self, random: Random | None = None) -> None:
        """Lose the connection and the held requests; `random` draws those that were done before."""
        held, self._held = self._held, []
        for work, result in held:
            if random is not None and random.random() < 0.5:
                self._done(work)
            result.answer(None, ConnectionLoss())
        self.is_connected = self.holds = False
        self._watches = _Watches()
        self._listen("SUSPENDED")

    def come_back(self) -> None:
        """Connect again, with the same session."""
        self.is_connected = True
        self._listen("CONNECTED")
        self._go_on()

    def expire(self, random: Random | None = None) -> None:
        """Lose the connection and the session, and begin another."""
        if self.is_connected:
            self.drop(random)
        self.server.end_session(self.session_id)
        held, self._held = self._held, []
        for _, result in held:
            result.answer(None, SessionExpiredError())
        self._listen("LOST")
        self.session_id = self.server.new_session()
        self.come_back()

    def hold(self) -> None:
        """Keep requests, undone, until `let_go` or `drop`."""
        self.holds = True

    def let_go(self) -> None:
        self.holds = False
        self._go_on()

    # ---- inside

    def ask(self, work: Callable[[], Any], result: _Result | None = None) -> _Result:
        result = result or _Result()
        if self.holds or not self.is_connected:
            self._held.append((work, result))
        else:
            result.answer(*self._done(work))
        return result

    def _go_on(self) -> None:
        held, self._held = self._held, []
        for work, result in held:
            result.answer(*self._done(work))

    @staticmethod
    def _done(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            return work(), None
        except KazooException as error:
            return None, error

    def _value(self, path: str, watch: Watch | None) -> tuple[bytes | None, ZnodeStat | None]:
        node = self.server.nodes.get(path)
        if node is None:
            raise NoNodeError
        self._set(self._watches.nodes, path, watch)
        return node.value, self.server.stat(path)

    def _names(self, path: str, watch: Watch | None) -> list[str]:
        if path not in self.server.nodes:
            raise NoNodeError
        self._set(self._watches.children, path, watch)
        return self.server.names_below(path)

    @staticmethod
    def _set(watches: dict[str, list[Watch]], path: str, watch: Watch | None) -> None:
        if watch is not None and watch not in watches.setdefault(path, []):
            watches[path].append(watch)

    def fire(self, kind: str, path: str) -> None:
        if not self.is_connected:
            return
        fired: list[Watch] = []
        if kind == "CHILD":
            fired += self._watches.children.pop(path, [])
        else:
            fired += self._watches.nodes.pop(path, [])
            if kind == "DELETED":
                fired += self._watches.children.pop(path, [])
        for watch in fired:
            watch(WatchedEvent(kind, "CONNECTED", path))
