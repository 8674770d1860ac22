"""Several brokers on one ZooKeeper, of any mix of kinds.

    with BrokerCluster(tmp_path, [Kind.KAFKA, Kind.OURS, Kind.OURS]) as cluster:
        cluster.create("orders", [[1, 2, 3], [2, 3, 1]])
        cluster[1].kill()
        cluster.wait_until(lambda view: view.partitions["orders", 0].leader == 2)

Broker ids are 1, 2, …; in this order they start. `with_network=True` puts `network` between them,
`with_disks=True` puts their logs on disks that can be full, `zookeepers=3` makes an ensemble.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.cluster.disk import Disk
from tests.support.cluster.member import Kind, Member, Place, new_place
from tests.support.cluster.network import Network
from tests.support.cluster.turn import wait_for_turn
from tests.support.cluster.view import ClusterView, Partition
from tests.support.server_process import ForWith
from tests.support.zookeeper import Ensemble, ZooKeeper

PATIENCE_S: Final = 60.0
SETTINGS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.enable": "false",  # Compaction leaves other bytes on each replica.
    "min.insync.replicas": "2",
    # Below the clients' timeout: if a commit in a transaction times out after it was repeated,
    # Kafka 3.9 forgets the second, too (GroupMetadata.failPendingTxnOffsetCommit).
    "offsets.commit.timeout.ms": "2000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "4000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": "6000",
}
"""Quick to notice a death; the same for both kinds."""
INTERNAL: Final = ("__consumer_offsets", "__transaction_state")
CLEANING: Final[Mapping[str, str]] = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "offsets.topic.segment.bytes": "4096",
    "transaction.state.log.segment.bytes": "16384",
}
"""Brokers clean the internal topics all the time, because no segment stays active for long."""


class BrokerCluster(ForWith):
    """The members, their ZooKeeper, and the network between them if there is one."""

    def __init__(
        self,
        directory: Path,
        kinds: Sequence[Kind],
        *,
        settings: Mapping[str, str] | None = None,
        own: Mapping[str, Any] | None = None,
        with_network: bool = False,
        with_disks: bool = False,
        zookeepers: int = 1,
        chroot: str = "",
        prepare: Callable[[str], object] = lambda zookeeper: None,
    ) -> None:
        """`own`: more arguments of each `Member`. `with_disks`: each broker has two log
        directories, each on a `Disk`. `prepare` is called with ZooKeeper's address before the first
        broker starts.
        """
        self.directory = directory
        self.settings = {**SETTINGS, **(settings or {})}
        self.ensemble = Ensemble(directory, zookeepers)
        self.disks: dict[int, list[Disk]] = {}
        self.members: dict[int, Member] = {}
        self.network: Network | None = None
        self._kinds = tuple(kinds)
        self._own = dict(own or {})
        self._with_network = with_network
        self._with_disks = with_disks
        self._chroot = chroot
        self._prepare = prepare
        self._turn = contextlib.ExitStack()

    def __getitem__(self, broker_id: int) -> Member:
        return self.members[broker_id]

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members.values())

    @property
    def zookeeper(self) -> ZooKeeper:
        """The only server, or the first."""
        return self.ensemble.servers[0]

    def log_dirs(self) -> dict[int, list[Path]]:
        """The log directories of all, for `replicas`."""
        return {member.broker_id: member.place.log_dirs for member in self}

    @property
    def compacted(self) -> tuple[str, ...]:
        """The topics that brokers clean."""
        return INTERNAL if self.settings["log.cleaner.enable"] == "true" else ()

    @property
    def running(self) -> list[Member]:
        """Members that run and do not stand still."""
        return [member for member in self if member.running and not member.is_paused]

    @property
    def bootstrap(self) -> str:
        """All places, for clients."""
        return ",".join(member.bootstrap for member in self)

    # ---- its life

    def start(self) -> "BrokerCluster":
        """Wait for the machine to have room, start ZooKeeper and all brokers, and wait until each
        knows all, and of one controller.
        """
        wait_for_turn(self._turn)
        self.ensemble.start()
        self._prepare(self.ensemble.connect + self._chroot)
        if self._with_network:
            self.network = Network(self._pids, [server.port for server in self.ensemble.servers])
        for broker_id, kind in enumerate(self._kinds, 1):
            self.add(broker_id, kind)
        for member in self:
            member.begin()
            if member.broker_id == 1:
                member.wait_until_member()  # The first is the controller.
        for member in self:
            member.wait_until_member()
        self.wait_until(lambda view: set(view.brokers) == set(self.members))
        return self

    def add(self, broker_id: int, kind: Kind) -> Member:
        """Make a place and its member, which does not run yet."""
        where = self.directory / f"broker-{broker_id}"
        address = f"{self.ensemble.connect}{self._chroot}"
        place = new_place(broker_id, where, address, self.settings, 1 + self._with_disks)
        if self._with_disks:
            self.disks[broker_id] = [Disk(path) for path in place.log_dirs]
        if self.network is not None:
            ports = self.network.before_zookeeper(broker_id)
            addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
            place = replace(
                place,
                advertised_port=self.network.before_broker(broker_id, place.internal_port),
                zookeeper=f"{addresses}{self._chroot}",
            )
        self.members[broker_id] = self._member(place, kind)
        return self.members[broker_id]

    def replace(self, broker_id: int, kind: Kind, *, emptied: bool = False) -> Member:
        """Stop the broker of a place cleanly and start one of this kind there."""
        before = self.members[broker_id]
        before.stop()
        if emptied:
            before.empty_directory()
        self.members[broker_id] = self._member(before.place, kind)
        return self.members[broker_id].start()

    def close(self) -> None:
        """Kill all processes."""
        for member in self:
            with contextlib.suppress(ProcessLookupError):
                member.resume()
                member.kill()
        if self.network is not None:
            self.network.close()
        self.ensemble.close()
        for disk in (disk for disks in self.disks.values() for disk in disks):
            disk.close()
        self.disks.clear()
        self._turn.close()

    # ---- its state

    def views(self) -> dict[int, ClusterView]:
        """Return the view of each running broker that answers."""
        told = {member.broker_id: member.view() for member in self.running}
        return {broker_id: view for broker_id, view in told.items() if view is not None}

    def view(self) -> ClusterView:
        """Return the view of a broker that answers. Raises AssertionError if none does."""
        for member in self.running:
            told = member.view()
            if told is not None:
                return told
        raise AssertionError(f"no broker answers\n{self.outputs()}")

    def wait_until(
        self,
        condition: Callable[[ClusterView], bool],
        patience_s: float = PATIENCE_S,
        *,
        what: str = "what was waited for",
    ) -> float:
        """Wait until it holds in the view of every running broker; return the seconds it took."""
        began = time.monotonic()
        while time.monotonic() - began < patience_s:
            told = self.views()
            if len(told) == len(self.running) and all(map(condition, told.values())) and told:
                return time.monotonic() - began
            time.sleep(0.05)
        last = "\n".join(f"{broker}: {view}" for broker, view in self.views().items())
        raise AssertionError(f"{what}: not after {patience_s} s\n{last}\n{self.outputs()}")

    def wait_until_whole(self, patience_s: float = PATIENCE_S) -> float:
        """Wait until all members run, know all, and every replica is in sync."""
        return self.wait_until(
            lambda view: set(view.brokers) == set(self.members) and not view.under_replicated(),
            patience_s,
            what="all replicas in sync",
        )

    def controller(self) -> int:
        """The id of the controller, when all running brokers name the same."""
        self.wait_until(lambda view: view.controller in self.members)
        names = {view.controller for view in self.views().values()}
        assert len(names) == 1, names
        return names.pop()

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker id of a leader."""
        return self.view().partitions[topic, partition].leader

    def wait_for_leader(
        self, place: Partition, other_than: int = -1, patience_s: float = PATIENCE_S
    ) -> int:
        """Wait until all running brokers name the same leader, not this one; return it."""
        found: set[int] = set()

        def is_named(view: ClusterView) -> bool:
            leader = view.partitions[place].leader if place in view.partitions else -1
            found.add(leader)
            return leader not in (-1, other_than)

        while True:
            found.clear()
            self.wait_until(is_named, patience_s, what=f"a leader of {place}")
            if len(found) == 1:
                return found.pop()

    def admin(self) -> AdminClient:
        """A new client of librdkafka for administration. Keep it until it has answered."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(
        self,
        topic: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic whose partitions have these replicas, the first of each the leader."""
        new = NewTopic(
            topic,
            num_partitions=len(replicas),
            replica_assignment=[list(each) for each in replicas],
            config=dict(config or {}),
        )
        self._ask_controller(lambda admin: admin.create_topics([new], operation_timeout=30))
        places = [(topic, number) for number in range(len(replicas))]
        self.wait_until(
            lambda view: all(
                place in view.partitions and view.partitions[place].is_whole for place in places
            ),
            what=f"{topic} on all replicas",
        )

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self._ask_controller(lambda admin: admin.delete_topics([topic], operation_timeout=30))

    def _ask_controller(self, ask: Callable[[AdminClient], dict[str, Any]]) -> None:
        """Ask until the controller answers: a client may know the controller before it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            admin = self.admin()
            (answer,) = ask(admin).values()
            try:
                answer.result(40)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if code != KafkaError.NOT_CONTROLLER or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def outputs(self) -> str:
        """The end of what each broker printed."""
        return "\n".join(f"==== {member}\n{member.output(3000)}" for member in self)

    def _member(self, place: Place, kind: Kind) -> Member:
        return Member(place, kind, is_registered=self._is_registered, **self._own)

    def _is_registered(self, broker_id: int) -> bool:
        """Whether a session holds the id; the answer to `dump` lists the nodes of each session."""
        path = f"{self._chroot}/brokers/ids/{broker_id}"
        return path in self.ensemble.ask("dump").split()

    def _pids(self) -> dict[int, int]:
        return {member.broker_id: member.pid for member in self if member.running}


def rotated(brokers: Sequence[int], partitions: int) -> list[list[int]]:
    """Replicas of so many partitions: all brokers, each the leader in turn."""
    count = len(brokers)
    return [[brokers[(first + at) % count] for at in range(count)] for first in range(partitions)]
