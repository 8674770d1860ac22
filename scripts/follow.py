"""Follows one request through the broker, from its bytes to its answer, and prints its path.

    scripts/follow [produce | join | sync | commit | end-txn | …] [--calls]

A whole broker runs in this process (`tests.support.whole_broker`); a client sends one request, and
this script notes every call that crosses from one room into another. A call from a room into one
that lies above it (a callback) is a climb. For each request it prints the number of rooms and of
climbs, then the climbs, or with --calls every call.

Rooms are the broker's packages and `storage`. Those that every room uses are left out: `protocol`
(bytes to values and back), `broker.world` (clock, streams), the values and timers at the top of
`broker`.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from protocol.api_keys import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.records.compression import CompressionType
from tests.anomalies.workload.raw import RawProducer
from tests.support.whole_broker import WholeBroker, run_whole_broker
from tests.whole.plain import fetched, produced, produced_pairs

ROOT: Final = Path(__file__).resolve().parents[1]


def _heights() -> dict[str, int]:
    """The layers of the broker's import contract (pyproject.toml), from below; `storage` is 0."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["id"] == "broker-inside")
    heights = {"storage": 0}
    for height, layer in enumerate(reversed(layers)):
        heights |= dict.fromkeys(re.findall(r"\w+", layer), height)
    del heights["world"]
    return heights


HEIGHTS: Final = _heights()
"""A room may import rooms of a lower height. `network` imports no handler of `api`, its equal: it
calls those that it was given."""


@dataclass
class Way:
    """The calls between rooms, in their order."""

    steps: list[tuple[int, str, str, str, bool]] = field(default_factory=list)
    """(depth, calling room, called room, function, whether it is a climb)"""
    rooms: dict[str, int] = field(default_factory=dict)

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call between rooms; the function for `sys.setprofile`."""
        if event != "call":
            return
        room = room_of(frame)
        if room is None:
            return
        depth, caller = 0, None
        above = frame.f_back
        while above is not None:
            if caller is None:
                caller = room_of(above)
            depth += room_of(above) is not None
            above = above.f_back
        self.rooms[room] = self.rooms.get(room, 0) + 1
        if caller is None or caller == room:
            return
        climb = HEIGHTS[room] > HEIGHTS[caller] or (caller, room) == ("api", "network")
        code = frame.f_code
        module = Path(code.co_filename).stem
        self.steps.append((depth, caller, room, f"{module}.{code.co_qualname}", climb))


def room_of(frame: FrameType) -> str | None:
    """The room of the code that runs in a frame; None if it is in none of `HEIGHTS`."""
    try:
        parts = Path(frame.f_code.co_filename).relative_to(ROOT).parts
    except ValueError:
        return None
    room = parts[1] if parts[0] == "broker" and len(parts) > 2 else parts[0]
    return room if room in HEIGHTS else None


Scenario = Callable[[WholeBroker, Callable[[], None]], Awaitable[None]]


async def _produce(broker: WholeBroker, begin: Callable[[], None]) -> None:
    client = broker.client()
    await produced(client, "t-0", "a")
    begin()
    await produced(client, "t-0", "b")


async def _produce_opened(broker: WholeBroker, begin: Callable[[], None]) -> None:
    """More records of odd sizes, compressed, than the loop looks into: a thread opens the batch."""
    client = broker.client()
    await produced(client, "t-0", "a")
    begin()
    many = ((None, "v" * (at % 2)) for at in range(5000))
    await produced_pairs(client, "t-0", *many, codec=CompressionType.LZ4)


async def _fetch(broker: WholeBroker, begin: Callable[[], None]) -> None:
    client = broker.client()
    await produced(client, "t-0", "a")
    await fetched(client, "t-0", 1)
    begin()
    await fetched(client, "t-0", 0)


async def _end_txn(broker: WholeBroker, begin: Callable[[], None]) -> None:
    producer = await RawProducer(broker.client(), "id", version=2).open()
    await producer.begin()
    await producer.send("t-0", "a")
    await producer.flush()
    begin()
    await producer.commit()


class _Member:
    """A member of a group, with its requests."""

    def __init__(self, broker: WholeBroker) -> None:
        self._client = broker.client()
        self.member_id = ""
        self.generation = -1

    async def find_coordinator(self) -> None:
        """Have `__consumer_offsets` made."""
        for _ in range(2):
            await self._client.call(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key="g"))
            await self._client.pause(1)

    async def join(self) -> None:
        for _ in range(2):  # with MEMBER_ID_REQUIRED first
            answer = await self._client.call(
                ApiKey.JOIN_GROUP,
                5,
                JoinGroupRequest(
                    group_id="g",
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
                ),
            )
            self.member_id, self.generation = answer.member_id, answer.generation_id
            if not answer.error_code:
                return

    async def sync(self) -> None:
        assigned = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"x")
        await self._client.call(
            ApiKey.SYNC_GROUP,
            3,
            SyncGroupRequest(
                group_id="g",
                generation_id=self.generation,
                member_id=self.member_id,
                assignments=[assigned],
            ),
        )

    async def heartbeat(self) -> None:
        await self._client.call(
            ApiKey.HEARTBEAT,
            3,
            HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.member_id),
        )

    async def commit(self) -> None:
        await self._client.call(
            ApiKey.OFFSET_COMMIT,
            7,
            OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=self.generation,
                member_id=self.member_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name="t",
                        partitions=[
                            OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                        ],
                    )
                ],
            ),
        )

    async def leave(self) -> None:
        await self._client.call(
            ApiKey.LEAVE_GROUP,
            3,
            LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=self.member_id)]),
        )


def _of_a_member(last: str) -> Scenario:
    async def scenario(broker: WholeBroker, begin: Callable[[], None]) -> None:
        member = _Member(broker)
        await member.find_coordinator()
        for step in ("join", "sync", "heartbeat", "commit", "leave"):
            if step == last:
                begin()
            await getattr(member, step)()
            if step == last:
                return

    return scenario


SCENARIOS: Final[dict[str, Scenario]] = {
    "produce": _produce,
    "produce-opened": _produce_opened,
    "fetch": _fetch,
    "join": _of_a_member("join"),
    "sync": _of_a_member("sync"),
    "heartbeat": _of_a_member("heartbeat"),
    "commit": _of_a_member("commit"),
    "leave": _of_a_member("leave"),
    "end-txn": _end_txn,
}


def follow(name: str) -> Way:
    """Run the scenario; return the path of its last request."""
    way = Way()

    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        await broker.clock.sleep(1)
        try:
            await SCENARIOS[name](broker, lambda: sys.setprofile(way.note))
        finally:
            sys.setprofile(None)

    run_whole_broker(scenario)
    return way


def main() -> None:
    """Print the paths of the requests that were named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("requests", nargs="*", choices=[*SCENARIOS, []], metavar="REQUEST")
    parser.add_argument("--calls", action="store_true", help="every call between rooms")
    args = parser.parse_args()
    for name in args.requests or SCENARIOS:
        way = follow(name)
        climbs = [step for step in way.steps if step[4]]
        print(f"{name}: {len(way.rooms)} rooms ({', '.join(way.rooms)}), {len(climbs)} climbs")
        for depth, caller, room, function, climb in way.steps if args.calls else climbs:
            print(f"  {'↑' if climb else ' '} {'  ' * min(depth, 20)}{caller} → {room}  {function}")


if __name__ == "__main__":
    main()
