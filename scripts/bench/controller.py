"""The controller of a large cluster: its processor time, what it sends, its memory.

The controller is the real one; ZooKeeper is a tree in this process, whose time is not counted, and
the brokers only take requests, which are encoded as they would be sent. Not in the figures: the
client of ZooKeeper (a write or read each), sockets, and the work of the brokers.

`cpu` is of this process, `step` the longest time that it would have held the event loop.

examples:
  scripts/bench/controller.py
  scripts/bench/controller.py --brokers 3 --partitions 2000
"""

import argparse
import gc
import itertools
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from broker.__main__ import GC_THRESHOLDS
from broker.cluster.metadata_store import TreeOperation
from protocol.api_keys import ApiKey
from protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    BrokerState,
)
from protocol.messages.leader_and_isr import LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaResponse
from protocol.messages.update_metadata import UpdateMetadataResponse
from protocol.schema import Message
from protocol.types import TopicPartition
from tests.support.controller_world import ControllerWorld, FakeBroker
from tests.support.scheduler import Scheduler
from tests.support.shared_tree import SharedTree, TreeSession

ANSWERS: Final = {
    ApiKey.LEADER_AND_ISR: LeaderAndIsrResponse,
    ApiKey.STOP_REPLICA: StopReplicaResponse,
    ApiKey.UPDATE_METADATA: UpdateMetadataResponse,
}
RACKS: Final = 4
REPLICAS: Final = 3
PER_TOPIC: Final = 100


class Nodes(dict[str, Any]):
    """Nodes by path, with the names below each."""

    def __init__(self) -> None:
        super().__init__()
        self.below: dict[str, dict[str, None]] = defaultdict(dict)

    def __setitem__(self, path: str, node: Any) -> None:
        super().__setitem__(path, node)
        parent, _, name = path.rpartition("/")
        self.below[parent][name] = None

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        parent, _, name = path.rpartition("/")
        del self.below[parent][name]


class LargeTree(SharedTree):
    """A tree that takes no copies, and knows how long it took."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: Nodes = Nodes()
        self.seconds = 0.0

    def names(self, path: str) -> list[str]:
        return sorted(self.nodes.below[path.rstrip("/")])

    def apply(self, operations: Sequence[TreeOperation], owner: TreeSession | None) -> list[int]:
        began = time.process_time()
        try:
            return super().apply(operations, owner)
        finally:
            self.history.clear()
            self.seconds += time.process_time() - began

    def _copy(self) -> Nodes:
        return self.nodes

    def _tell(self, events: Any) -> None:
        for session in self.sessions:
            if session._watchers:
                session.tell(events)


class Obedient:
    """A connection to a broker that obeys every request; it counts them and their bytes."""

    sent = requests = largest = 0

    def __init__(self, broker: FakeBroker) -> None:
        self._broker = broker

    async def ask(
        self, key: ApiKey, request: Message, *, version: int | None = None, timeout_s: float
    ) -> Message:
        assert version is not None
        size = len(type(request).codec(version).build(request))
        Obedient.sent += size
        Obedient.requests += 1
        Obedient.largest = max(Obedient.largest, size)
        return ANSWERS[key]()

    async def ready(self, *, timeout_s: float) -> None:
        pass

    def version_of(self, key: ApiKey) -> int | None:
        return None

    def close(self) -> None:
        pass


class Timed(Scheduler):
    """Knows its longest step."""

    longest = 0.0

    def _step(self) -> bool:
        began = time.thread_time()
        found = super()._step()
        self.longest = max(self.longest, time.thread_time() - began)
        return found


def resident_mb() -> float:
    """This process's memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


class Cluster:
    """Brokers 1 to n in racks, and topics whose partitions have replicas in three racks."""

    def __init__(self, brokers: int, partitions: int) -> None:
        self.scheduler, self.tree = Timed(), LargeTree()
        self.world = world = ControllerWorld(
            scheduler=self.scheduler, tree=self.tree, peer=Obedient
        )
        self.count = brokers
        self.rack = max(brokers // RACKS, 1)
        world.start_broker(*range(1, brokers + 1))
        for topic in range(partitions // PER_TOPIC):
            first = topic * PER_TOPIC
            rows = [self.replicas(first + index) for index in range(PER_TOPIC)]
            world.create_topic(f"topic-{topic}", rows)

    def replicas(self, number: int, among: int = REPLICAS) -> tuple[int, ...]:
        """Brokers of a partition: each in another rack."""
        turn = number // self.count
        return tuple(
            (number + rank * (self.rack + turn % self.rack if rank else 0)) % self.count + 1
            for rank in range(among)
        )

    def without(self, broker: int, number: int) -> tuple[int, ...]:
        """A partition's brokers with another one in the place of `broker`.

        The other is that of a fourth rack, or the next one that has no replica.
        """
        *replicas, fourth = self.replicas(number, REPLICAS + 1)
        places = range(fourth, fourth + self.count)
        others = ((place - 1) % self.count + 1 for place in places)
        spare = next((one for one in others if one not in replicas), None)
        if spare is None:
            return (*replicas[1:], replicas[0])
        return tuple(spare if one == broker else one for one in replicas)

    def do(self, what: str, act: Any) -> None:
        """Do it, let all follow from it, and tell what it took."""
        Obedient.sent = Obedient.requests = Obedient.largest = 0
        self.scheduler.longest = self.tree.seconds = 0.0
        began = time.process_time()
        act()
        self.world.scheduler.settle(10**12)
        seconds = time.process_time() - began - self.tree.seconds
        gc.collect()
        print(
            f"{what:34} cpu {seconds:6.1f} s  sent {Obedient.sent / 1e6:7.1f} MB in "
            f"{Obedient.requests:6} requests, the largest {Obedient.largest / 1e6:5.2f} MB  "
            f"step {self.scheduler.longest * 1000:4.0f} ms  memory {resident_mb():6.0f} MB",
            flush=True,
        )

    def reassign(self, broker: int, partitions: int) -> None:
        """Give replicas of a broker, of that many partitions, to others; these come in sync.

        With three brokers there are no others: the replicas change their order.
        """
        controller = self.world.controllers[1]
        moved: dict[TopicPartition, tuple[int, ...]] = {}
        for number in itertools.count():
            replicas = self.replicas(number)
            if len(moved) == partitions:
                break
            if broker in replicas:
                tp = TopicPartition(f"topic-{number // PER_TOPIC}", number % PER_TOPIC)
                moved[tp] = self.without(broker, number)
        results = self.world.scheduler.run(controller.requests.alter_reassignments(moved))
        assert not any(results.values()), results
        state = controller._term.state  # type: ignore[union-attr]
        joined: dict[int, dict[str, list[AlteredPartition]]] = defaultdict(dict)
        for tp, target in moved.items():
            known = state.topics[tp.topic].leaderships[tp.partition]
            isr = (*known.isr, *(one for one in target if one not in known.isr))
            joined[known.leader].setdefault(tp.topic, []).append(
                AlteredPartition(
                    partition_index=tp.partition,
                    leader_epoch=known.leader_epoch,
                    partition_epoch=known.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=one, broker_epoch=self.world.brokers[one].epoch)
                        for one in isr
                    ],
                )
            )
        for leader, topics in joined.items():
            request = AlterPartitionRequest(
                broker_id=leader,
                broker_epoch=self.world.brokers[leader].epoch,
                topics=[
                    AlteredTopic(topic_id=state.topics[name].topic_id, partitions=some)
                    for name, some in topics.items()
                ],
            )
            self.world.scheduler.run(controller.requests.alter_partition(request))
        self.scheduler.settle(10**12)
        left = self.world.scheduler.run(controller.requests.list_reassignments(None))
        assert not left, len(left)


def main() -> None:
    """Do what happens to a large cluster."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=200_000)
    options = parser.parse_args()
    if options.brokers < REPLICAS:
        parser.error(f"a partition has {REPLICAS} replicas: --brokers must be {REPLICAS} at least")
    gc.set_threshold(*GC_THRESHOLDS)
    cluster = Cluster(options.brokers, options.partitions)
    world, rack = cluster.world, cluster.rack
    print(
        f"{options.brokers} brokers, {options.partitions} partitions of {REPLICAS} replicas; "
        f"without the controller {resident_mb():.0f} MB"
    )
    cluster.do("new partitions", lambda: world.start_controller(1))
    cluster.do("another controller", lambda: (world.start_controller(2), world.expire(1)))
    world.controllers[1] = world.controllers[2]
    last = options.brokers
    cluster.do("a broker lost", lambda: world.kill_broker(last))
    cluster.do("it is back", lambda: world.start_broker(last))
    others = range(last - rack, last)
    cluster.do(f"a rack of {rack} lost", lambda: world.kill_broker(*others))
    cluster.do("it is back", lambda: world.start_broker(*others))
    moved = options.partitions // 200
    cluster.do(f"{moved} partitions moved", lambda: cluster.reassign(last // 2, moved))


if __name__ == "__main__":
    main()
