"""Groups of the classic protocol: a rebalance, heartbeats, commits."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from load import Load, check_reply, refuse_errors
from sides import PATIENCE_S, Side

from cases import Bench, Figures, Measure, case, per_request
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.wire_client import WireClient, read_response, request_frame

FIND, JOIN, SYNC, HEARTBEAT, COMMIT = 3, 5, 3, 3, 7
"""Versions."""
Answer = TypeVar("Answer")
SESSION_MS = 600_000
"""Nobody sends a heartbeat while others are measured."""


class Group:
    """Members whose connections the load generator has; the first leads."""

    def __init__(self, side: Side, name: str, count: int) -> None:
        self.side = side
        self.name = name
        self.generation = 0
        find_coordinator(side, name)
        self.members = [patiently(self._new_member) for _ in range(count)]

    def _new_member(self) -> str:
        with WireClient(self.side.port) as client:
            client.send(self._join("", 0))
            _, answer = read_response(ApiKey.JOIN_GROUP, JOIN, client.receive_frame())
        if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise RuntimeError(f"JoinGroup: {answer.error_code}")
        return str(answer.member_id)

    def _join(self, member: str, number: int) -> bytes:
        # Another subscription than before: whoever comes first begins the rebalance.
        subscription = struct.pack(">hih4si4sq", 0, 1, 4, b"none", 12, b"at: ", number)
        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        return request_frame(ApiKey.JOIN_GROUP, JOIN, request)

    def _sync(self, member: str) -> bytes:
        shares = [
            SyncGroupRequestAssignment(member_id=each, assignment=bytes(100))
            for each in (self.members if member == self.members[0] else ())
        ]
        request = SyncGroupRequest(
            group_id=self.name,
            generation_id=self.generation,
            member_id=member,
            assignments=shares,
        )
        return request_frame(ApiKey.SYNC_GROUP, SYNC, request)

    def form(self) -> None:
        """Make the first generation, in which the first to join leads.

        All connections are there before the first joins: Kafka lets 50 wait to be accepted, the
        next one tries again a second later, and by then the first would have a group of its own.
        """
        self.generation = 1
        with ExitStack() as stack:
            clients = [
                stack.enter_context(WireClient(self.side.port, timeout_s=PATIENCE_S))
                for _ in self.members
            ]
            for frame_of, key, version in (
                (partial(self._join, number=1), ApiKey.JOIN_GROUP, JOIN),
                (self._sync, ApiKey.SYNC_GROUP, SYNC),
            ):
                for client, member in zip(clients, self.members, strict=True):
                    client.send(frame_of(member))
                    if client is clients[0]:
                        time.sleep(0.05)  # so that it is the first
                for client in clients:
                    refuse_errors(read_response(key, version, client.receive_frame())[1])

    def rebalance(self, load: Load) -> dict[str, Any]:
        """All members join again and take their assignments: the next generation."""
        self.generation += 1
        frames = [
            frame
            for member in self.members
            for frame in (self._join(member, self.generation), self._sync(member))
        ]
        words = {"port": self.side.port, "pid": self.side.pid}
        told = load.run("chains", frames, connections=len(self.members), steps=2, **words)
        check_reply(told, ApiKey.SYNC_GROUP, SYNC)
        return told

    def heartbeats(self) -> list[bytes]:
        """A heartbeat of each member."""
        return [
            request_frame(
                ApiKey.HEARTBEAT,
                HEARTBEAT,
                HeartbeatRequest(
                    group_id=self.name, generation_id=self.generation, member_id=member
                ),
            )
            for member in self.members
        ]


def find_coordinator(side: Side, group: str) -> None:
    """Find the group's coordinator; the first search makes __consumer_offsets."""
    request = FindCoordinatorRequest(key=group, key_type=0)
    patiently(lambda: side.call(ApiKey.FIND_COORDINATOR, FIND, request))


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask again while the coordinator is made or loads."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def rebalance(bench: Bench, side: Side, members: int) -> Iterator[Measure]:
    """A rebalance: all members join and sync, on connections that are open."""
    group = Group(side, f"bench-{members}-{time.time()}", members)
    group.form()

    def measure() -> Figures:
        told = group.rebalance(bench.loads[0])
        return {"ms": told["seconds"] * 1000, "CPU ms": told["broker_cpu"] * 1000}

    yield measure


def heartbeats(bench: Bench, side: Side, members: int) -> Iterator[Measure]:
    """Heartbeats of a group's members, each on its connection at depth 1."""
    group = Group(side, f"bench-heartbeats-{time.time()}", members)
    group.form()

    def measure() -> Figures:
        told = bench.load(side, group.heartbeats(), members)
        check_reply(told, ApiKey.HEARTBEAT, HEARTBEAT)
        return per_request(told)

    yield measure


def commits(bench: Bench, side: Side, connections: int) -> Iterator[Measure]:
    """Commits of one offset, a group for each connection."""
    with side.topics(1, 1) as (topic,):
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        frames = []
        for number in range(connections):
            group = f"bench-commits-{number}"
            find_coordinator(side, group)
            topics = [OffsetCommitRequestTopic(name=topic, partitions=[place])]
            request = OffsetCommitRequest(group_id=group, topics=topics)
            patiently(partial(side.call, ApiKey.OFFSET_COMMIT, COMMIT, request))
            frames.append(request_frame(ApiKey.OFFSET_COMMIT, COMMIT, request))

        def measure() -> Figures:
            told = bench.load(side, frames, connections)
            check_reply(told, ApiKey.OFFSET_COMMIT, COMMIT)
            return per_request(told)

        yield measure


CASES = {
    **{f"groups/rebalance of {n}": case(rebalance, n) for n in (10, 100, 300)},
    "groups/heartbeats, 64 x 1": case(heartbeats, 64),
    **{f"groups/commits, {n} x 1": case(commits, n) for n in (4, 64)},
}
