"""Consumers on raw frames: read_committed as Kafka's consumer reads it.

`AssignedReader` reads the partitions of its caller, `MemberReader` those that its group gives it
(classic protocol, eager). Both are `PollingReader`s and `RewindingReader`s of
`tests.anomalies.workload.roles`. They open batches as Kafka's `CompletedFetch` does: they compare
checksums, and leave out aborted transactions by the answer's list and the markers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.versioned import encode_versioned
from protocol.records.batch import iter_batches, verify_crc
from protocol.records.control import ControlType, parse_control_type
from protocol.records.record import iter_records
from tests.anomalies.workload.clients import PATIENCE_S, GivenUp, OnMove, Records, joined, split
from tests.anomalies.workload.raw import TRY_AGAIN
from tests.simulation.offsets import GroupLedger
from tests.simulation.wire import Wire

FETCH_VERSIONS: Final = (4, 6, 7, 11, 12)
PARTITION_BYTES: Final = (250, 600, 2000)
"""Small answers, because each must list the aborted transactions that reach into it."""
MIN_BYTES: Final = (1, 500, 1000)
"""Some wait for more: fewer requests, and fetches that are parked."""
_FIND, _JOIN, _SYNC, _HEARTBEAT, _LEAVE, _COMMIT, _OFFSETS = 3, 5, 3, 3, 3, 7, 7
_PAUSE_S: Final = 0.5
SESSION_MS: Final = 6000
"""The shortest session that a broker allows by default."""
_LOST: Final = frozenset(
    (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )
)


class Broken(AssertionError):
    """The broker answered what it must never answer."""


def by_topic(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return the partitions by topic."""
    topics: dict[str, list[int]] = {}
    for key in keys:
        topic, partition = split(key)
        topics.setdefault(topic, []).append(partition)
    return topics


class Fetcher:
    """Positions in partitions, and the fetch session (KIP-227) that reads on from them."""

    def __init__(
        self, wire: Wire, random: Random, *, stretch: float = 1.0, committed: bool = True
    ) -> None:
        """`stretch`: the factor by which it waits longer for records than its caller wants;
        `committed` False: as a read_uncommitted consumer."""
        self._wire = wire
        self._committed = committed
        self._stretch = stretch
        self._version = random.choice(FETCH_VERSIONS)
        self._max_bytes = random.choice(PARTITION_BYTES)
        self._min_bytes = random.choice(MIN_BYTES)
        self.positions: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._session_id = 0
        self._session_epoch = 0

    def assign(self, positions: Mapping[str, int]) -> None:
        """Read these partitions and no others."""
        self.positions = dict(positions)

    async def fetch(self, timeout_s: float, limit: int) -> Records:
        """Return the next records; none if there are none, or no answer."""
        timeout_s *= self._stretch
        if not self.positions:
            await self._wire.pause(timeout_s)
            return {}
        try:
            answer = await self._wire.call(
                ApiKey.FETCH, self._version, self._request(timeout_s), timeout_s + 3.0
            )
        except OSError:
            self._forget_session()
            await self._wire.pause(_PAUSE_S)
            return {}
        if self._version >= 7:
            code = ErrorCode(answer.error_code)
            if code is not ErrorCode.NONE:
                self._forget_session()
                return {}
            self._session_id = answer.session_id
            self._session_epoch = self._session_epoch + 1 if answer.session_id else 0
        before = dict(self.positions)
        found = self._opened(answer, limit)
        if self.positions == before and any(
            p.error_code for t in answer.responses for p in t.partitions
        ):
            await self._wire.pause(timeout_s)  # an error is answered at once
        return found

    def _request(self, timeout_s: float) -> Any:
        with_session = self._version >= 7
        positions = self.positions
        wanted = [key for key, at in positions.items() if self._told.get(key) != at]
        forgotten = [key for key in self._told if key not in positions]
        if not with_session or self._session_epoch == 0:
            wanted, forgotten = list(positions), []
        self._told = dict(positions) if with_session else {}
        return FetchRequest(
            max_wait_ms=int(timeout_s * 1000),
            min_bytes=self._min_bytes,
            max_bytes=8 * self._max_bytes,
            isolation_level=int(self._committed),
            session_id=self._session_id,
            session_epoch=self._session_epoch if with_session else -1,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=number,
                            fetch_offset=positions[joined(topic, number)],
                            partition_max_bytes=self._max_bytes,
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted).items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(forgotten).items()
            ],
        )

    def _forget_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._told = {}

    def _opened(self, answer: Any, limit: int) -> Records:
        found: Records = {}
        for topic in answer.responses:
            for part in topic.partitions:
                key = joined(topic.topic, part.partition_index)
                code = ErrorCode(part.error_code)
                if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise Broken(f"{key} cannot be read at {self.positions.get(key)} any more")
                if code is not ErrorCode.NONE or key not in self.positions or not part.records:
                    continue
                pairs, following = records_of(part, self.positions[key], committed=self._committed)
                if len(pairs) > limit:
                    pairs = pairs[:limit]
                    following = pairs[-1][0] + 1
                limit -= len(pairs)
                self.positions[key] = following
                if pairs:
                    found[key] = pairs
                if limit <= 0:
                    return found
        return found


def records_of(part: Any, position: int, *, committed: bool) -> tuple[list[tuple[int, str]], int]:
    """Return ((offset, value) of each record, the next position) of one partition's answer.

    Raises Broken for a batch whose checksum is wrong, or that lies where none may lie.
    """
    data = bytes(part.records)
    waiting = sorted(
        ((one.first_offset, one.producer_id) for one in part.aborted_transactions or ()),
        reverse=True,
    )
    aborted: set[int] = set()
    pairs: list[tuple[int, str]] = []
    following = position
    for at, header in iter_batches(data):
        if not verify_crc(data, at, header):
            raise Broken(f"the batch at offset {header.base_offset} is damaged")
        if committed and header.last_offset >= part.last_stable_offset >= 0:
            raise Broken(f"offset {header.last_offset} is not stable: {part.last_stable_offset}")
        while waiting and waiting[-1][0] <= header.last_offset:
            aborted.add(waiting.pop()[1])
        following = max(following, header.last_offset + 1)
        if header.is_control:
            # A marker that compaction has reduced to its header has no record.
            for record in iter_records(data, at):
                if parse_control_type(record.key) is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in aborted:
            continue
        pairs += (
            (record.offset, bytes(record.value or b"").decode())
            for record in iter_records(data, at)
            if record.offset >= position
        )
    return pairs, following


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(self, wire: Wire, group: str, who: str, ledger: GroupLedger | None) -> None:
        """`ledger`, if any, compares fetched offsets with the acknowledged ones."""
        self._wire = wire
        self._group = group
        self._who = who
        self._ledger = ledger

    async def committed(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the stable committed offsets; 0 where there is none. Raises GivenUp."""
        ledger, group = self._ledger, self._group
        floors = {key: ledger.floor(group, key) for key in keys} if ledger is not None else {}
        request = OffsetFetchRequest(
            group_id=group,
            topics=[
                OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(keys).items()
            ],
            require_stable=True,
        )
        answer = await persistent(
            self._wire,
            ApiKey.OFFSET_FETCH,
            _OFFSETS,
            request,
            lambda said: max(
                (said.error_code, *(p.error_code for t in said.topics for p in t.partitions))
            ),
        )
        found = {
            joined(topic.name, part.partition_index): max(part.committed_offset, 0)
            for topic in answer.topics
            for part in topic.partitions
        }
        if ledger is not None:
            for key, offset in found.items():
                ledger.fetched(self._who, group, key, offset, floors[key])
        return found

    async def commit(
        self, offsets: Mapping[str, int], *, member_id: str = "", generation: int = -1
    ) -> ErrorCode:
        """Try once to commit; return NETWORK_EXCEPTION if there was no answer."""
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=offsets[joined(topic, number)],
                            committed_metadata="",
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(list(offsets)).items()
            ],
        )
        ledger = self._ledger
        await self._wire.pause(0)  # while the client is stopped
        latest = ledger.generation(self._group) if ledger is not None else -1
        try:
            answer = await self._wire.call(ApiKey.OFFSET_COMMIT, _COMMIT, request)
        except OSError:
            return ErrorCode.NETWORK_EXCEPTION
        code = ErrorCode(max(p.error_code for t in answer.topics for p in t.partitions))
        if code is ErrorCode.NONE and ledger is not None:
            ledger.commit_acknowledged(self._who, self._group, offsets, generation, latest)
        return code


async def persistent(
    wire: Wire, key: ApiKey, version: int, request: Any, code_of: Callable[[Any], int]
) -> Any:
    """Send a request until its error is none after which clients try again. Raises GivenUp."""
    deadline = wire.monotonic() + PATIENCE_S
    while wire.monotonic() < deadline:
        try:
            answer = await wire.call(key, version, request)
        except OSError:
            await wire.pause(_PAUSE_S)
            continue
        code = ErrorCode(code_of(answer))
        if code in TRY_AGAIN or code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
            await wire.pause(_PAUSE_S)
            continue
        if code is not ErrorCode.NONE:
            raise GivenUp(f"{key.name}: {code.name}")
        return answer
    raise GivenUp(f"{key.name} was not answered for {PATIENCE_S} s")


class AssignedReader:
    """Reads `keys`, from their beginning or from where its group is."""

    def __init__(
        self,
        wire: Wire,
        random: Random,
        keys: Sequence[str],
        on_move: OnMove,
        *,
        group: str = "",
        stretch: float = 1.0,
    ) -> None:
        self._keys = keys
        self._on_move = on_move
        self._fetcher = Fetcher(wire, random, stretch=stretch)
        self._offsets = GroupOffsets(wire, group, "", None)

    async def open(self, *, from_committed: bool = False) -> "AssignedReader":
        """Begin at the first offsets, or at those of the group. Raises GivenUp."""
        positions = dict.fromkeys(self._keys, 0)
        if from_committed:
            positions = await self._offsets.committed(self._keys)
        self._fetcher.assign(positions)
        self._on_move(self._keys)
        return self

    async def poll(self, timeout_s: float, limit: int) -> Records:
        """Return the next records."""
        return await self._fetcher.fetch(timeout_s, limit)

    async def commit(self, offsets: Mapping[str, int]) -> None:
        """A reader without a group commits nothing."""

    async def seek(self, offsets: Mapping[str, int]) -> None:
        """Read on from there."""
        self._fetcher.assign(self._fetcher.positions | dict(offsets))
        self._on_move(list(offsets))

    async def rewind(self, keys: Sequence[str]) -> None:
        """Read on from the group's offsets."""
        await self.seek(await self._offsets.committed(keys))


class MemberReader:
    """A member of `group`, subscribed to the topics of `keys`, which are all their partitions."""

    def __init__(
        self,
        wire: Wire,
        random: Random,
        keys: Sequence[str],
        on_move: OnMove,
        *,
        group: str,
        who: str,
        ledger: GroupLedger,
        stretch: float = 1.0,
        keeps_ledger: bool = True,
        session_ms: int = SESSION_MS,
        hangs: float = 0.0,
    ) -> None:
        """`keeps_ledger` False: offsets are committed in transactions, in no order of their own.
        `hangs`: the share of commits before which it works so long that others may have taken its
        place.
        """
        self._wire = wire
        self._random = random
        self._session_ms = session_ms
        self._hangs = hangs
        self._keys = tuple(keys)
        self._on_move = on_move
        self._group = group
        self._who = who
        self._ledger = ledger
        self._fetcher = Fetcher(wire, random, stretch=stretch)
        self._offsets = GroupOffsets(wire, group, who, ledger if keeps_ledger else None)
        self._is_member = False
        self._heartbeat_at = 0.0
        self.member_id = ""
        self.generation = -1

    async def poll(self, timeout_s: float, limit: int) -> Records:
        """Return the next records; join the group first if that is due. Raises GivenUp."""
        if not self._is_member:
            await self._join()
        if self._wire.monotonic() >= self._heartbeat_at:
            await self._heartbeat()
            if not self._is_member:
                return {}
        return await self._fetcher.fetch(timeout_s, limit)

    async def commit(self, offsets: Mapping[str, int]) -> None:
        """Commit the offsets at which a successor begins; a refused member joins again."""
        if self._random.random() < self._hangs:
            await self._wire.pause(self._random.uniform(0, 3 * self._session_ms / 1000))
        code = await self._offsets.commit(
            offsets, member_id=self.member_id, generation=self.generation
        )
        self._look_at(code)

    async def seek(self, offsets: Mapping[str, int]) -> None:
        """Read on from there. Raises GivenUp if a partition is no longer assigned."""
        if not offsets.keys() <= self._fetcher.positions.keys():
            raise GivenUp("moved")
        self._fetcher.assign(self._fetcher.positions | dict(offsets))
        self._on_move(list(offsets))

    async def rewind(self, keys: Sequence[str]) -> None:
        """Read on from the group's offsets. Raises GivenUp if a partition is no longer assigned."""
        await self.seek(await self._offsets.committed(keys))

    async def leave(self) -> None:
        """Try once to leave the group."""
        request = LeaveGroupRequest(
            group_id=self._group, members=[MemberIdentity(member_id=self.member_id)]
        )
        try:
            await self._wire.call(ApiKey.LEAVE_GROUP, _LEAVE, request)
        except OSError:
            self._wire.close()

    # ---- the protocol

    def _look_at(self, code: ErrorCode) -> None:
        if code in _LOST:
            self._is_member = False
            self._fetcher.assign({})
            self._on_move(())
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

    async def _heartbeat(self) -> None:
        self._heartbeat_at = self._wire.monotonic() + self._session_ms / 3000
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self.generation, member_id=self.member_id
        )
        try:
            answer = await self._wire.call(ApiKey.HEARTBEAT, _HEARTBEAT, request)
        except OSError:
            return
        self._look_at(ErrorCode(answer.error_code))

    async def _join(self) -> None:
        deadline = self._wire.monotonic() + PATIENCE_S
        while self._wire.monotonic() < deadline:
            try:
                if await self._try_to_join():
                    return
            except OSError:
                pass
            await self._wire.pause(_PAUSE_S)
        raise GivenUp(f"cannot join {self._group}")

    async def _try_to_join(self) -> bool:
        find = FindCoordinatorRequest(key=self._group, key_type=0)
        found = await self._wire.call(ApiKey.FIND_COORDINATOR, _FIND, find)
        if found.error_code:
            return False
        topics = sorted(by_topic(self._keys))
        metadata = encode_versioned(
            ConsumerProtocolSubscription, 0, ConsumerProtocolSubscription(topics=topics)
        )
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=2 * self._session_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await self._wire.call(
            ApiKey.JOIN_GROUP, _JOIN, request, patience_s=4 * self._session_ms / 1000
        )
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return False
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code is not ErrorCode.NONE:
            return False
        self.member_id, self.generation = answer.member_id, answer.generation_id
        keys = await self._sync(answer)
        if keys is None:
            return False
        self._ledger.assigned(self.member_id, self._group, self.generation, keys)
        positions = await self._offsets.committed(keys) if keys else {}
        self._fetcher.assign(positions)
        self._is_member = True
        self._heartbeat_at = self._wire.monotonic() + self._session_ms / 3000
        self._on_move(keys)
        return True

    async def _sync(self, join: Any) -> list[str] | None:
        """Return the partitions of this member; None if it has to join again."""
        assignments = []
        if join.leader == self.member_id:
            members = sorted(member.member_id for member in join.members)
            for number, member_id in enumerate(members):
                keys = self._keys[number :: len(members)]
                assignments.append(
                    SyncGroupRequestAssignment(
                        member_id=member_id, assignment=json.dumps(keys).encode()
                    )
                )
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
        )
        answer = await self._wire.call(
            ApiKey.SYNC_GROUP, _SYNC, request, patience_s=4 * self._session_ms / 1000
        )
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code is not ErrorCode.NONE:
            return None
        return list(json.loads(bytes(answer.assignment) or b"[]"))
