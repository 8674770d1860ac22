"""S-GRP-1 to S-GRP-3, S-GRP-7: clients that come, go, crash and rebalance, on virtual time.

Every client is a small model of a consumer: it joins, assigns when it leads, syncs, sends
heartbeats and commits. Some are static, some old (no member id required), some cooperative (they
keep what they own and hand over in a second rebalance). The broker may restart from its log, and
its writes may fail or be late. Whatever happens:

* a commit is accepted only from the member that the current generation assigned the partition to;
* in one generation no partition has two owners;
* in the end all that live are in one stable generation, and own every partition once.
"""

import json
import random
from typing import Any

import pytest

from broker.coordinator.group.classic.state import GroupState
from protocol.errors import ErrorCode
from tests.support.group_harness import GroupHarness, Parked

PARTITIONS = 12
TICK_MS = 500
HEARTBEAT_MS = 2_000
REQUEST_TIMEOUT_MS = 90_000


class Client:
    """A consumer; `owned` are the partitions that it reads now."""

    def __init__(self, world: "World", name: str, rng: random.Random) -> None:
        self.world = world
        self.name = name
        self.instance = name if rng.random() < 0.3 else None
        self.require_id = rng.random() < 0.7
        self.cooperative = world.cooperative
        self.alive = True
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.phase = "out"
        self.parked: Parked | None = None
        self.parked_since = 0
        self.next_heartbeat = 0

    # ---- requests

    def tick(self, now: int) -> None:
        if not self.alive:
            return
        if self.parked is not None:
            if self.parked.done:
                self.on_reply(self.parked.reply, now)
            elif now - self.parked_since > REQUEST_TIMEOUT_MS:
                self.phase, self.parked = "out", None  # as after a request timeout
            return
        if self.phase == "out":
            self.join(now)
        elif self.phase == "in" and now >= self.next_heartbeat:
            self.next_heartbeat = now + HEARTBEAT_MS
            self.heartbeat(now)

    def metadata(self) -> bytes:
        return json.dumps({"owned": sorted(self.owned), "generation": self.generation}).encode()

    def join(self, now: int) -> None:
        if not self.cooperative:
            self.owned = set()
        self.phase = "joining"
        self.parked_since = now
        self.parked = self.world.groups.join(
            self.member_id,
            instance=self.instance,
            protocol_type="model",
            protocols=(("only", self.metadata()),),
            require_id=self.require_id,
            rebalance_ms=20_000,
            skip=self.require_id,
        )

    def heartbeat(self, now: int) -> None:
        code = self.world.groups.heartbeat(self.member_id, self.generation, instance=self.instance)
        if code is ErrorCode.NONE:
            self.commit()
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.commit()
            self.join(now)
        else:
            self.on_error(code)

    def commit(self) -> None:
        for partition in self.owned:
            done = self.world.groups.commit(
                self.world.time,
                partition=partition,
                member_id=self.member_id,
                generation=self.generation,
                instance=self.instance,
            )
            if done.done and done.reply is ErrorCode.NONE:
                self.world.committed(self, partition)

    def leave(self) -> None:
        self.alive = False
        self.world.groups.leave(
            (self.member_id, self.instance) if self.instance else self.member_id
        )

    # ---- answers

    def on_reply(self, reply: Any, now: int) -> None:
        self.parked = None
        if reply.error is not ErrorCode.NONE:
            if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id, self.phase = reply.member_id, "out"
            else:
                self.on_error(reply.error)
            return
        if self.phase == "joining":
            self.member_id, self.generation = reply.member_id, reply.generation
            leads = bool(reply.members) and not reply.skip_assignment
            self.phase = "syncing"
            self.parked_since = now
            self.parked = self.world.groups.sync(
                self.member_id,
                self.generation,
                self.assign(reply.members) if leads else {},
                instance=self.instance,
                protocol_type="model",
                protocol_name="only",
            )
        else:
            self.phase = "in"
            self.next_heartbeat = now + HEARTBEAT_MS
            assigned = set(json.loads(reply.assignment)) if reply.assignment else set()
            self.world.assigned(self, assigned)
            revoked = self.owned - assigned
            self.owned = assigned
            if self.cooperative and revoked:
                self.join(now)  # the partitions that it gave up can go to another member now

    def on_error(self, code: ErrorCode) -> None:
        self.phase, self.parked = "out", None
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.alive = False
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self.generation, self.owned = -1, set()

    def assign(self, members: Any) -> dict[str, bytes]:
        """Assign evenly; a cooperative leader leaves partitions to their owners if that is fair."""
        ids = sorted(member.member_id for member in members)
        share = -(-PARTITIONS // len(ids))
        result: dict[str, list[int]] = {member_id: [] for member_id in ids}
        claims: dict[int, list[tuple[int, str]]] = {}
        if self.cooperative:
            for member in members:
                said = json.loads(member.metadata)
                for partition in said["owned"]:
                    claims.setdefault(partition, []).append((said["generation"], member.member_id))
        free = []
        for partition in range(PARTITIONS):
            owner = max(claims.get(partition, [(0, "")]))[1]
            if owner and len(result[owner]) < share:
                result[owner].append(partition)
            elif not owner:
                free.append(partition)
            # else: its owner gives it up now, and the next rebalance hands it out
        for partition in free:
            least = min(ids, key=lambda member_id: (len(result[member_id]), member_id))
            result[least].append(partition)
        return {member_id: json.dumps(parts).encode() for member_id, parts in result.items()}


class World:
    """The clients, the broker, and the promises that must hold."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cooperative = self.rng.random() < 0.5
        self.groups = GroupHarness()
        self.clients: list[Client] = []
        self.owners: dict[int, dict[int, str]] = {}
        self.names = 0

    @property
    def time(self) -> int:
        return self.groups.clock.wall_ms()

    def assigned(self, client: Client, partitions: set[int]) -> None:
        owners = self.owners.setdefault(client.generation, {})
        for partition in partitions:
            instance_or_id = client.instance or client.member_id
            assert owners.setdefault(partition, instance_or_id) == instance_or_id

    def committed(self, client: Client, partition: int) -> None:
        assert client.generation == self.groups.group().generation
        assert self.owners[client.generation][partition] == (client.instance or client.member_id)

    def run(self, milliseconds: int) -> None:
        for _ in range(milliseconds // TICK_MS):
            for client in self.rng.sample(self.clients, len(self.clients)):
                client.tick(self.time)
            self.groups.advance_ms(TICK_MS)

    def disturb(self) -> None:
        what = self.rng.random()
        living = [client for client in self.clients if client.alive]
        if what < 0.4 or not living:
            self.names += 1
            self.clients.append(Client(self, f"c{self.names}", self.rng))
        elif what < 0.55:
            self.rng.choice(living).leave()
        elif what < 0.7:
            self.rng.choice(living).alive = False  # crashes without a word
        elif what < 0.8:
            self.bounce(self.rng.choice(living))
        elif what < 0.9:
            self.trouble_with_writes()
        else:
            self.restart()

    def bounce(self, client: Client) -> None:
        """The process of a client is restarted under its instance id, if it has one."""
        client.alive = False
        again = Client(self, client.name + "'", self.rng)
        again.instance = client.instance
        self.clients.append(again)

    def trouble_with_writes(self) -> None:
        if self.rng.random() < 0.5:
            self.groups.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
            self.run(self.rng.choice([1_000, 5_000]))
            self.groups.log.fail_with = ErrorCode.NONE
        else:
            self.groups.log.hold = True
            self.run(self.rng.choice([1_000, 5_000]))
            self.groups.log.hold = False
            self.groups.log.release()

    def restart(self) -> None:
        """Restart the broker; clients that waited for an answer ask again."""
        before = self.groups
        self.groups = GroupHarness(log=before.log, clock=before.clock, ids=before.ids)
        self.groups.load()
        # Generations after the last written one were never stored, and are counted again.
        group = self.groups.shard().group("g")
        last = group.generation if group is not None else 0
        self.owners = {number: kept for number, kept in self.owners.items() if number <= last}
        for client in self.clients:
            if client.parked is not None:
                client.parked, client.phase = None, "out"

    def check_settled(self) -> None:
        living = [client for client in self.clients if client.alive]
        shard = self.groups.shard()
        group = shard.group("g")
        if not living:
            assert group is None or group.state is GroupState.EMPTY
            return
        assert group is not None
        assert group.state is GroupState.STABLE
        assert set(group.members) == {client.member_id for client in living}
        assert {client.generation for client in living} == {group.generation}
        owned = sorted(partition for client in living for partition in client.owned)
        assert owned == list(range(PARTITIONS))
        assert not group.pending_join
        assert len(self.groups.coordinator._timers) <= len(living) + 1


def simulate(seed: int) -> None:
    world = World(seed)
    for _ in range(3):
        world.disturb()
    for _ in range(world.rng.randrange(5, 15)):
        world.run(world.rng.choice([0, 1_000, 4_000, 20_000]))
        world.disturb()
    world.run(240_000)
    world.check_settled()
    again = GroupHarness(log=world.groups.log, clock=world.groups.clock)
    again.load()
    stored, living = again.shard().group("g"), world.groups.shard().group("g")
    if living is not None and living.state is GroupState.STABLE:
        assert stored is not None
        assert {m.member_id: m.assignment for m in stored.members.values()} == {
            m.member_id: m.assignment for m in living.members.values()
        }


@pytest.mark.parametrize("seed", range(25))
def test_s_grp_7_groups_settle_and_never_share_a_partition(seed: int) -> None:
    simulate(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_s_grp_7_many_more_groups(seed: int) -> None:
    simulate(seed)
