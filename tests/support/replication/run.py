"""Runs of three replicating brokers under faults, each from a seed: `python -m … --seeds 1000`.

Producers write with acks=all and min.insync.replicas=2 while brokers are killed, cut off from each
other or from the controller, and slowed down. Checked are

* what a leader showed to consumers (below its high watermark) is never shown otherwise;
* an acknowledged record is at its offset at the end, on every replica in sync;
* replicas are equal up to the high watermark, and catch up once the faults end;
* writes go on while two brokers in sync are left (`lag_run`).
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from broker.cluster.image import PartitionImage
from broker.replication.partition import Partition
from storage.log.results import FetchIsolation
from storage.waits import sleep
from tests.anomalies.cluster_broker import SABOTAGES
from tests.support.replication.cluster import LAG_TIME_S, TOPIC, Cluster, SimBroker
from tests.support.replication.controller import CONTROLLER, SESSION_S, SimController


class Anomaly(AssertionError):
    """A promise of replication that was not kept."""


class Run:
    """One run."""

    def __init__(self, seed: int, *, seconds: float = 40.0, partitions: int = 2) -> None:
        self.seed = seed
        self.cluster = Cluster(seed, partitions=partitions)
        self.random = Random(seed ^ 0x5EED)
        self.seconds = seconds
        self.indexes = range(partitions)
        self.acknowledged: dict[int, dict[int, bytes]] = {index: {} for index in self.indexes}
        self.shown: dict[int, dict[int, bytes]] = {index: {} for index in self.indexes}
        self.faults: list[str] = []
        self._seen: dict[tuple[int, int, int], int] = {}
        """(broker, its epoch, partition) to where it was read last."""
        self._written = 0
        self._ending = False

    def fail(self, what: str) -> None:
        raise Anomaly(f"seed {self.seed}: {what}; faults: {self.faults}")

    # ------------------------------------------------------------------ events

    def go(self) -> "Run":
        """Run and check. Raises Anomaly."""
        loop = self.cluster.loop
        self.cluster.begin()
        for index in self.indexes:
            for _ in range(2):
                loop.start(self._produce(index))
        loop.start(self._observe())
        loop.start(self._harm())
        loop.run(self.seconds)
        self._ending = True
        self._repair()
        loop.run(15.0)
        self._check_end()
        return self

    async def _produce(self, index: int) -> None:
        cluster = self.cluster
        while not self._ending:
            await sleep(self.random.random() ** 2 * 0.3)
            # Mostly the broker that leads, sometimes one that may believe it does.
            broker = cluster.leader_of(index)
            if broker is None or self.random.random() < 0.3:
                broker = cluster.brokers[self.random.choice(tuple(cluster.brokers))]
            if not broker.alive:
                continue
            self._written += 1
            size = self.random.choice((0, 0, 0, 300, 3000))
            value = b"%d" % self._written + b"." * size
            if self.random.random() < 0.002:
                value += b"x" * 300_000  # written by a thread on all replicas

            def done(offset: int | None, value: bytes = value) -> None:
                if offset is not None:
                    known = self.acknowledged[index].setdefault(offset, value)
                    if known != value:
                        self.fail(f"offset {offset} of {index} was acknowledged twice")

            broker.start(broker.produce(index, value), done)

    async def _observe(self) -> None:
        """Read as consumers do, from each broker that believes to lead."""
        while True:
            await sleep(0.3)
            self.look()

    def look(self, *, anew: bool = False) -> None:
        for broker in self.cluster.brokers.values():
            for index in self.indexes:
                partition = self._partition(broker, index)
                if partition is None or partition.unavailable:
                    continue
                shown = self.shown[index]
                place = broker.id, broker.epoch, index
                first = 0 if anew else min(self._seen.get(place, 0), partition.log.high_watermark)
                self._seen[place] = partition.log.high_watermark
                found = broker.contents(index, FetchIsolation.HIGH_WATERMARK, first)
                for offset, value in found.items():
                    if shown.setdefault(offset, value) != value:
                        self.fail(f"offset {offset} of {index} shows another record on {broker.id}")

    def _partition(self, broker: SimBroker, index: int) -> Partition | None:
        return broker.replicas.find((TOPIC, index)) if broker.alive else None

    async def _harm(self) -> None:
        cluster, random = self.cluster, self.random
        while not self._ending:
            await sleep(0.5 + random.random() * 4)
            if self._ending:
                return
            victim = cluster.brokers[random.choice(tuple(cluster.brokers))]
            others = [broker for broker in cluster.brokers if broker != victim.id]
            what = random.choice(("kill", "kill", "cut", "cut off", "zombie", "one way"))
            self.faults.append(f"{cluster.loop.now:.1f} {what} {victim.id}")
            if what == "kill":
                await self._kill(victim)
                continue
            links = cluster.links
            if what == "cut":
                links.isolate(victim.id, [random.choice(others)])
            elif what == "one way":
                links.cut.add((victim.id, random.choice(others)))
            elif what == "cut off":
                links.isolate(victim.id, others)
            elif random.random() < 0.5:
                links.isolate(victim.id, [CONTROLLER])
            else:
                links.isolate(victim.id, [*others, CONTROLLER])
            await sleep(random.random() * 2.5 * LAG_TIME_S)
            if (victim.id, CONTROLLER) in links.cut:
                cluster.controller.unregistered(victim.id)
                await sleep(random.random() * 3)
                links.cut -= {(victim.id, CONTROLLER), (CONTROLLER, victim.id)}
                self._register_again(victim)
                if random.random() < 0.5:  # it still reaches no other broker
                    loop = cluster.loop
                    loop.at(random.random() * 4, links.heal)
                    await self._kill(cluster.brokers[random.choice(others)])
            links.heal()

    async def _kill(self, victim: SimBroker) -> None:
        victim.kill()
        controller = self.cluster.controller
        if self.random.random() < 0.7:
            await sleep(SESSION_S * self.random.random())
        if not victim.alive:  # the run has not ended meanwhile
            controller.unregistered(victim.id)
        await sleep(self.random.random() * 4)
        if not victim.alive:
            self._begin(victim)

    def _begin(self, broker: SimBroker) -> None:
        broker.begin()
        self.cluster.controller.registered(broker)

    def _register_again(self, broker: SimBroker) -> None:
        if broker.alive:
            broker.epoch += 1
            self.cluster.controller.registered(broker)

    def _repair(self) -> None:
        cluster = self.cluster
        cluster.links.heal()
        for broker in cluster.brokers.values():
            if not broker.alive:
                cluster.controller.unregistered(broker.id)
                self._begin(broker)
            elif broker.id not in cluster.controller.live:
                self._register_again(broker)

    # ------------------------------------------------------------------ promises

    def _check_end(self) -> None:
        self.look(anew=True)
        for index in self.indexes:
            image: PartitionImage = self.cluster.controller.partitions[index]
            if set(image.isr) != set(self.cluster.brokers):
                self.fail(f"not all are in sync again: {image}")
            logs = {
                broker: self.cluster.brokers[broker].contents(index, FetchIsolation.LOG_END)
                for broker in image.isr
            }
            for broker, found in logs.items():
                for offset, value in self.acknowledged[index].items():
                    if found.get(offset) != value:
                        self.fail(f"acknowledged record {offset} of {index} is not on {broker}")
                for offset, value in self.shown[index].items():
                    if found.get(offset) != value:
                        self.fail(f"record {offset} of {index}, seen before, is not on {broker}")
            if len({tuple(sorted(found.items())) for found in logs.values()}) != 1:
                self.fail(f"replicas of {index} differ")
            marks = {
                partition.log.high_watermark
                for broker in self.cluster.brokers.values()
                if (partition := self._partition(broker, index)) is not None
            }
            if len(marks) != 1:
                self.fail(f"high watermarks of {index} differ at rest: {marks}")


def lag_run(seed: int) -> None:
    """A follower is cut off from its leader: after the lag time writes must go on without it."""
    run = Run(seed, partitions=1)
    cluster, loop = run.cluster, run.cluster.loop
    cluster.begin()
    loop.start(run._produce(0))
    loop.run(3.0)
    cluster.links.isolate(2, [1])
    loop.run(3 * LAG_TIME_S)
    before = len(run.acknowledged[0])
    loop.run(2.0)
    run._ending = True
    if not before or len(run.acknowledged[0]) == before:
        run.fail("nothing is acknowledged while a follower lags")


def zombie_run(seed: int) -> None:
    """A leader is cut off and replaced. It reaches the controller before it hears of that, and
    wants an ISR of its own. Then its successor dies."""
    run = Run(seed, partitions=1)
    cluster, loop, links = run.cluster, run.cluster.loop, run.cluster.links
    controller = cluster.controller
    cluster.begin()
    for _ in range(2):
        loop.start(run._produce(0))
    loop.run(3.0)
    leader = cluster.leader_of(0)
    assert leader is not None
    others = [broker for broker in cluster.brokers if broker != leader.id]
    links.isolate(leader.id, [*others, CONTROLLER])
    loop.run(SESSION_S)
    controller.unregistered(leader.id)
    loop.run(2 * LAG_TIME_S)
    links.cut.discard((leader.id, CONTROLLER))  # the words of the controller do not arrive
    loop.run(2.0)
    successor = cluster.leader_of(0)
    assert successor is not None
    successor.kill()
    controller.live.add(leader.id)
    controller.unregistered(successor.id)
    loop.run(1.0)
    run._ending = True
    run._repair()
    loop.run(15.0)
    run._check_end()


# ---------------------------------------------------------------------- sabotage


@contextmanager
def sabotaged(kind: str) -> Iterator[None]:
    """All brokers, and the controller, lack a guarantee: one of `SABOTAGES`."""
    with pytest.MonkeyPatch.context() as patches:
        SABOTAGES[kind](patches.setattr)
        if kind == "fencing":
            patches.setattr(SimController, "fences", False)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # brokers that cannot reach each other log it
    began = time.perf_counter()
    acknowledged = 0
    for seed in range(options.first, options.first + options.seeds):
        if options.sabotage:
            with sabotaged(options.sabotage):
                try:
                    lag_run(seed)
                    zombie_run(seed)
                    Run(seed).go()
                except Anomaly as found:
                    print(f"{options.sabotage}: found by seed {seed}: {str(found)[:150]}")
                    return
        else:
            run = Run(seed).go()
            acknowledged += sum(map(len, run.acknowledged.values()))
            if seed % 10 == 0:
                lag_run(seed)
                zombie_run(seed)
    took = time.perf_counter() - began
    print(
        f"seeds {options.first} to {options.first + options.seeds - 1}: no anomaly, "
        f"{acknowledged} records acknowledged, {took:.0f} s"
    )
    if options.sabotage:
        sys.exit(f"{options.sabotage} was not found")


if __name__ == "__main__":
    main()
