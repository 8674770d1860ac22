"""The cluster's metadata tree in ZooKeeper, behind the interface of the embedded store.

    store = await ZooKeeperStore.open(ZooKeeperSettings.of(config), soon)
    await store.apply([Check("/controller_epoch", 4), Put(path, value, version)])

Beside the promises of `MetadataStore`:

1. *Writes* are one `multi`, with missing parents, the nodes below a recursive deletion, and Kafka's
   notifications for trees that have a log of them. `writes` has the rules.
2. *Watches* get changes that were made from here before `apply` returns, and others when ZooKeeper
   reports them. `watch` names the nodes.
3. *Ephemeral nodes* are gone with the session; the code that made them makes them again
   (`watch_session`).
4. *Waiting.* Without a connection an operation waits for one, for up to two session timeouts, and
   then raises StoreUnavailableError.

Event loop only. Sources: `kafka.zk.KafkaZkClient`, `kafka.zookeeper.ZooKeeperClient` (3.9).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Applied,
    Check,
    MetadataStore,
    NodeEvent,
    Put,
    StoredNode,
    StoreUnavailableError,
    TreeOperation,
    Watcher,
)
from broker.world.clock import SystemClock
from broker.zookeeper.change_logs import CHANGE_LOGS, log_of
from broker.zookeeper.log_watch import LogWatch
from broker.zookeeper.node_watch import NodeWatch
from broker.zookeeper.operations import Tree
from broker.zookeeper.reads import Reads
from broker.zookeeper.requests import Requests
from broker.zookeeper.session import Session, SessionState, SessionWatcher, Soon
from broker.zookeeper.settings import ZooKeeperSettings
from broker.zookeeper.writes import Noted, Writes
from storage.clock import Clock
from storage.distribution import DistributionSnapshot

PERSISTENT_PATHS: Final = (
    *("/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/admin/delete_topics"),
    *("/brokers/seqid", "/isr_change_notification", "/latest_producer_id_block"),
    *("/log_dir_event_notification", "/config/topics", "/config/clients", "/config/users"),
    *("/config/brokers", "/config/ips"),
)
"""Nodes that every start makes if they are not there (`ZkData.PersistentZkPaths`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperStatistics:
    """For metrics."""

    state: SessionState
    in_flight: int
    times_connected: int
    """Connections since the start (Kafka: ZooKeeperSyncConnectsPerSec)."""
    times_suspended: int
    """Kafka: ZooKeeperDisconnectsPerSec."""
    times_expired: int
    """Kafka: ZooKeeperExpiresPerSec."""
    latencies: DistributionSnapshot
    """The latencies of requests (Kafka: ZooKeeperRequestLatencyMs)."""


class ZooKeeperStore(MetadataStore):
    """The tree in ZooKeeper. Made by `open`."""

    def __init__(self, settings: ZooKeeperSettings, soon: Soon, clock: Clock) -> None:
        """Use `open`."""
        self._session = Session(settings, soon)
        self._requests = Requests(
            self._session, settings.most_in_flight, settings.session_timeout_s, clock
        )
        self._tree = Tree(settings.address.chroot)
        self._reads = Reads(self._requests, self._tree)
        self._writes = self._writes_of(self._tree, self._reads, self._note)
        self._watches: list[NodeWatch] = []
        self._logs = {log: LogWatch(self._requests, self._tree, log) for log in CHANGE_LOGS}
        self._session.watch(self._look_again)
        self.session_timeout_s = settings.session_timeout_s
        """The configured timeout; ZooKeeper may have chosen another one."""

    @classmethod
    async def open(
        cls, settings: ZooKeeperSettings, soon: Soon, clock: Clock | None = None
    ) -> "ZooKeeperStore":
        """Connect, and make the chroot and Kafka's top nodes where they are missing.

        `soon` runs a function on the loop; it is called in other threads. `clock` measures how
        long requests take. Raises MetadataStoreError, whose text is for the operator.
        """
        store = cls(settings, soon, clock or SystemClock())
        try:
            if not await store._session.connect():
                problem = store._session.problem
                raise StoreUnavailableError(
                    "zookeeper.connect",
                    f"no ZooKeeper server of {settings.address} has answered within "
                    f"{settings.connection_timeout_s:g} s (zookeeper.connection.timeout.ms)"
                    + (f". The last error: {problem}" if problem else ""),
                )
            await store._make_top()
        except BaseException:
            await store.close()
            raise
        return store

    def _writes_of(self, tree: Tree, reads: Reads, noted: Noted) -> Writes:
        session = self._session
        return Writes(self._requests, tree, reads, noted, lambda: session.session_id)

    async def _make_top(self) -> None:
        """Make the chroot and the nodes that must be there, as Kafka does."""
        if self._tree.chroot:
            root = Tree("")
            writes = self._writes_of(root, Reads(self._requests, root), lambda _: None)
            await writes.make_missing(await writes.missing([self._tree.chroot]))
        await self._writes.make_missing(await self._writes.missing(PERSISTENT_PATHS))

    # ---- session

    @property
    def state(self) -> SessionState:
        """The state of the session, as far as this broker knows."""
        return self._session.state

    @property
    def session_id(self) -> int:
        """The id of the newest session."""
        return self._session.session_id

    @property
    def ended_sessions(self) -> frozenset[int]:
        """The ids of this store's earlier sessions."""
        return frozenset(self._session.ended)

    def watch_session(self, watcher: SessionWatcher) -> Callable[[], None]:
        """Call `watcher` with each new state, until the result is called.

        CONNECTED after EXPIRED is a new session, which has none of the ephemeral nodes.
        """
        return self._session.watch(watcher)

    def statistics(self) -> ZooKeeperStatistics:
        """For metrics."""
        session = self._session
        return ZooKeeperStatistics(
            state=session.state,
            in_flight=self._requests.in_flight,
            times_connected=session.times_connected,
            times_suspended=session.times_suspended,
            times_expired=session.times_expired,
            latencies=self._requests.latencies(),
        )

    async def close(self) -> None:
        """End the session, which removes its ephemeral nodes. Safe to call twice."""
        for watch in self._watches:
            watch.end()
        await self._session.close()

    # ---- reading

    async def get(self, path: str) -> StoredNode | None:
        """See `MetadataStore`."""
        return (await self._reads.nodes([path]))[0]

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """See `MetadataStore`; pipelined."""
        return await self._reads.nodes(paths)

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore`."""
        return (await self._reads.children([path]))[0] or []

    async def owner(self, path: str) -> int | None:
        """The session that an ephemeral node belongs to; 0 for another node, None for none."""
        stat = await self._reads.stat(path)
        return None if stat is None else int(stat.ephemeralOwner)

    # ---- writing

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        """See `MetadataStore`. Raises RequestTooLargeError if it does not fit into one request."""
        await self._writes.together(operations)

    async def apply_each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check] = ()
    ) -> list[Applied]:
        """See `MetadataStore`. One request for each change, pipelined."""
        return await self._writes.each(operations, checks)

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        """See `MetadataStore`."""
        return (await self._writes.together([Put(path, value, version)]))[0]

    # ---- watches

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with changes, until the result is called.

        In a tree that has one of Kafka's notification logs (`change_logs`), the changes are those
        of the nodes at `path` and below that notifications name; each counts as changed. In other
        trees they are those of the node at `path` and of its children that are made, changed or
        deleted, but of nothing deeper. Changes that were made from here are reported in either
        case, and after a lost connection all that may have happened.
        """
        log = log_of(path)
        if log is not None:
            return self._logs[log].watch(path, watcher)
        watch = NodeWatch(self._requests, self._tree, path, watcher)
        self._watches.append(watch)
        watch.look()

        def unwatch() -> None:
            watch.end()
            if watch in self._watches:
                self._watches.remove(watch)

        return unwatch

    def _note(self, events: Sequence[tuple[NodeEvent, int]]) -> None:
        for watch in tuple(self._watches):
            watch.note(events)
        for log in self._logs.values():
            log.note([event for event, _ in events])

    def _look_again(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            for watch in tuple(self._watches):
                watch.look(again=True)
            for log in self._logs.values():
                log.look()
