"""Fetch (key 1): read record batches, for consumers and followers.

Behaviour
* The request or its fetch session (`fetch_session`, v7+) names the partitions, `read_plan` reads
  them. Records are answered as slices of the segment files.
* The answer goes out at once if it has `min_bytes`, if `max_wait_ms` is 0, if a partition answers
  with something else than data (an error, a diverging epoch) or is read in an older segment than
  that of its limit, or if this broker serves none of the partitions. Otherwise the request is
  parked (`delayed_fetch`).
* `fetch.max.bytes` caps `max_bytes` (S-READ-9), and `max_bytes` caps `min_bytes`.
* A follower (replica id >= 0) reads up to the log end. The offset that it asks for confirms that it
  has everything below, which may move the high watermark.
* A fetch of more than `MANY` partitions, named or in its session, is read in turns; it reads again
  after pauses instead of waiting in the purgatory.
* The preferred replica is always -1: there is no replica selector.

Version notes
* v0-1 get magic 0, v2-3 magic 1: batches are converted (`down_converter`), or refused with
  UNSUPPORTED_VERSION if `message.downconversion.enable` is off, UNSUPPORTED_COMPRESSION_TYPE for
  zstd batches and for topics with `compression.type=zstd` (S-READ-10). From v4 on every client gets
  zstd (KIP-110 refused it below v10; Kafka 4 does not).
* v0-2: limits also hold for the first batch, which may be cut.
* v0-5 do not know KAFKA_STORAGE_ERROR; they get NOT_LEADER_OR_FOLLOWER.
* v12+: last fetched epoch and diverging epoch. v13+: UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID.
* v15+: the follower's id is in the tagged replica_state.
* v16+: a FENCED_LEADER_EPOCH comes with the partition's leader and epoch (KIP-951).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from broker.api_facts import Api
from broker.replication.delayed_fetch import DelayedFetch
from broker.replication.down_converter import DownConverter
from broker.replication.fetch_session import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    FetchContext,
    FetchSessionCache,
    Key,
    make_targets,
)
from broker.replication.isolation import isolation_of
from broker.replication.partition import Partition
from broker.replication.read_plan import FetchParams, FetchRead, FetchTarget
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import (
    Access,
    Name,
    Operation,
    ResourceType,
    the_cluster,
    where,
)
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from protocol.types import ZERO_UUID, TopicPartition
from storage.clock import Clock
from storage.waits import PAUSE, sleep

FIRST_VERSION_WITH_MAX_BYTES: Final = 3
FIRST_VERSION_WITH_MAGIC_2: Final = 4
FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_LEADER_HINTS: Final = 16
FIRST_VERSION_WITH_MAGIC_1: Final = 2

MANY: Final = 5000
"""Partitions that a fetch may have to be read at once: some ten milliseconds of work."""
LOOK_AGAIN_S: Final = 0.02
"""Seconds, at least, that a larger fetch pauses before it reads again."""
LOOK_AGAIN_AFTER: Final = 4
"""It pauses at least this many times as long as the last read took."""


_Response = FetchResponse
_TopicReply = FetchableTopicResponse


def _of_follower(ctx: RequestContext, request: FetchRequest) -> bool:
    return _replica_of(ctx.api_version, request) >= 0


def _fetched(ctx: RequestContext, request: FetchRequest) -> Iterable[Name]:
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if not _of_follower(ctx, request):
        for topic in request.topics:
            yield topic.topic_id if by_id else topic.topic


API: Final = Api(
    key=ApiKey.FETCH,
    versions=(0, 18),
    most_elements=10_000,
    in_workers=True,
    ends_with_client=True,
    carries_files=True,
    # KafkaApis.handleFetchRequest
    accesses=(
        Access(ResourceType.CLUSTER, Operation.CLUSTER_ACTION, where(_of_follower, the_cluster)),
        Access(ResourceType.TOPIC, Operation.READ, _fetched),
    ),
    make=lambda s: FetchHandler(
        s.replica_manager,
        s.fetch_sessions,
        s.config.fetch_max_bytes,
        converter=DownConverter(s.looker, s.replica_manager.storage_failed),
        clock=s.clock,
    ),
)


class FetchHandler:
    """Reads partitions in the order of the session, or waits until there is enough to read."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        sessions: FetchSessionCache,
        fetch_max_bytes: int,
        *,
        converter: DownConverter,
        clock: Clock,
    ) -> None:
        self._replicas = replica_manager
        self._find = replica_manager.find
        self._storage_failed = replica_manager.storage_failed
        self._purgatory = replica_manager.purgatories.fetch
        self._sessions = sessions
        self._fetch_max_bytes = fetch_max_bytes
        self._converter = converter
        self._clock = clock

    async def __call__(self, ctx: RequestContext, request: FetchRequest) -> FetchResponse:
        """The response, as soon as there is one to give."""
        ctx.released = True
        version = ctx.api_version
        params = _params(
            _replica_of(version, request),
            request.isolation_level,
            request.min_bytes,
            request.max_bytes,
            self._fetch_max_bytes,
            version < FIRST_VERSION_WITH_MAX_BYTES,
        )
        named = 0
        for topic in request.topics:
            named += len(topic.partitions)
        made = await _made_in_turns(version, request) if named > MANY else None
        try:
            context = self._sessions.open(request, version, params.replica_id >= 0, made)
        except KafkaError as error:
            return _whole_request(error.code)
        targets = context.targets
        shared = self._replicas.shared_reads if version >= FIRST_VERSION_WITH_MAGIC_2 else None
        read = FetchRead(params, shared)
        if len(targets) > MANY:
            read = await self._read_many(context, params, request.max_wait_ms)
        else:
            self._read(targets, params, read)
            if not read.is_due and request.max_wait_ms > 0:
                parked = DelayedFetch(targets, params, read)
                if read.entries:  # what was read is not kept while it waits
                    read = FetchRead(params, shared)
                self._purgatory.watch(parked, parked.keys, request.max_wait_ms / 1000)
                try:
                    await parked.due.parked()
                finally:
                    parked.abandon()  # if the client has gone
                    parked.leave()
                # The request's arrival recorded the follower's offsets: a plain lookup will do.
                read.run(targets, self._lookup, self._storage_failed)
        reply = self._answer(version, context, params, read)
        if version < FIRST_VERSION_WITH_MAGIC_2:
            await self._converter.convert(_with_records(read), _magic_of(version), params.max_bytes)
        return reply

    # ------------------------------------------------------------------ reading

    async def _read_many(
        self, context: FetchContext, params: FetchParams, max_wait_ms: int
    ) -> FetchRead:
        """Read in turns, and again after pauses until it is due, or the time is over."""
        began = self._clock.monotonic()
        until = began + max(max_wait_ms, 0) / 1000
        while True:
            read = FetchRead(params)
            for target in list(context.targets):
                self._read((target,), params, read)
                await PAUSE
            now = self._clock.monotonic()
            if read.is_due or now >= until:
                return read
            pause = max(LOOK_AGAIN_S, LOOK_AGAIN_AFTER * (now - began))
            await sleep(min(pause, until - now))
            began = self._clock.monotonic()

    def _read(self, targets: Iterable[FetchTarget], params: FetchParams, read: FetchRead) -> None:
        """Read `targets`, within the bytes that `read` has left."""
        if params.replica_id < 0:
            read.run(targets, self._lookup, self._storage_failed)
            return
        moved: list[Partition] = []

        def lookup(target: FetchTarget) -> Partition:
            return self._lookup_for_follower(target, params.replica_id, moved)

        for target in targets:
            target.partition = None
        read.run(targets, lookup, self._storage_failed)
        for partition in moved:
            self._replicas.wake(partition)

    def _lookup(self, target: FetchTarget) -> Partition:
        """The target's partition. Raises KafkaError with the code to answer for it."""
        if target.topic is None or target.topic_id != ZERO_UUID:
            partition = self._replicas.partition_by_id(target.topic_id, target.index)
            target.topic = partition.topic_partition.topic
            return partition
        found = self._find((target.topic, target.index))
        if found is None or found.unavailable:
            raise self._replicas.refusal(TopicPartition(target.topic, target.index))
        return found

    def _lookup_for_follower(
        self, target: FetchTarget, replica_id: int, moved: list[Partition]
    ) -> Partition:
        """As `_lookup`; also record the follower's offset, if it lies in the log and does not
        diverge. Appends the partition to `moved` if that moves the high watermark."""
        partition = self._lookup(target)
        partition.check_leader_epoch(target.leader_epoch)
        data = partition.log
        offset = target.fetch_offset
        if not data.log_start_offset <= offset <= data.log_end_offset:
            return partition
        epoch = target.last_fetched_epoch
        if epoch >= 0 and partition.diverging_epoch(epoch, offset) is not None:
            return partition
        if partition.record_follower_fetch(
            replica_id, offset, knows_epoch=target.leader_epoch >= 0
        ):
            moved.append(partition)
        return partition

    # ------------------------------------------------------------------ answering

    def _answer(
        self, version: int, context: FetchContext, params: FetchParams, read: FetchRead
    ) -> FetchResponse:
        """The response: neighbouring partitions of a topic share its entry."""
        if version < FIRST_VERSION_WITH_STORAGE_ERROR:
            _for_old_client(version, read)
        elif read.urgent and version >= FIRST_VERSION_WITH_LEADER_HINTS:
            _add_leader_hints(read)
        try:
            session_id, entries = context.answer(read.entries)
        except KafkaError as error:
            return _whole_request(error.code)
        by_id = context.by_id
        to_follower = params.replica_id >= 0
        response = _Response()
        response.session_id = session_id
        response.responses = topics = []
        last: str | bytes | None = None
        for target, data, size in entries:
            topic = target.topic_id if by_id else target.topic
            if topic != last:
                last = topic
                topic_reply = _TopicReply()
                if by_id:
                    topic_reply.topic_id = target.topic_id
                else:
                    topic_reply.topic = target.topic or ""
                topic_reply.partitions = partitions = []
                topics.append(topic_reply)
            partitions.append(data)
            if size:
                statistics = target.partition.statistics  # type: ignore[union-attr]  # it gave data
                if to_follower:
                    statistics.replication_bytes_out += size
                else:
                    statistics.bytes_out += size
        return response

    def error_response(
        self, ctx: RequestContext, request: FetchRequest, code: ErrorCode
    ) -> FetchResponse:
        """`code` for the whole request from v7 on, else for every partition."""
        if ctx.api_version >= 7:
            return _whole_request(code)
        return _every_partition(request, code)


async def _made_in_turns(version: int, request: FetchRequest) -> dict[Key, FetchTarget] | None:
    """The targets of a full fetch; None for one that changes a session."""
    if request.session_epoch > 0:
        return None
    targets = {}
    for key, target in make_targets(request, version >= FIRST_VERSION_WITH_TOPIC_IDS):
        targets[key] = target
        await PAUSE
    return targets


@lru_cache(maxsize=64)
def _params(
    replica_id: int,
    isolation_level: int,
    min_bytes: int,
    max_bytes: int,
    most_bytes: int,
    hard_limit: bool,
) -> FetchParams:
    """The parameters of a request. Most requests of all clients have the same few."""
    if not 0 <= max_bytes <= most_bytes:
        max_bytes = most_bytes if max_bytes > 0 else 0
    return FetchParams(
        replica_id=replica_id,
        isolation=isolation_of(is_replica=replica_id >= 0, isolation_level=isolation_level),
        min_bytes=min_bytes if min_bytes < max_bytes else max_bytes,
        max_bytes=max_bytes,
        hard_limit=hard_limit,
    )


def _replica_of(version: int, request: FetchRequest) -> int:
    replica: int
    if version < FIRST_VERSION_WITH_REPLICA_STATE:
        replica = request.replica_id
    else:
        replica = request.replica_state.replica_id
    return replica


def _with_records(read: FetchRead) -> list[tuple[FetchTarget, PartitionData]]:
    return [(target, data) for target, data, _ in read.entries if data.records]


def _magic_of(version: int) -> int:
    return 0 if version < FIRST_VERSION_WITH_MAGIC_1 else 1


def _whole_request(code: ErrorCode) -> FetchResponse:
    """A response without session and partitions: only the code (v7+)."""
    response = _Response()
    response.error_code = code
    return response


def _every_partition(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    response = _Response()
    response.responses = topics = []
    for topic in request.topics:
        topic_reply = _TopicReply()
        topic_reply.topic = topic.topic
        topic_reply.partitions = [
            PartitionData(
                partition_index=asked.partition,
                error_code=code,
                high_watermark=-1,
                aborted_transactions=None,
                records=b"",
            )
            for asked in topic.partitions
        ]
        topics.append(topic_reply)
    return response


def _add_leader_hints(read: FetchRead) -> None:
    """Name leader and epoch to clients whose epoch was fenced (KIP-951)."""
    for target, data, _ in read.entries:
        partition = target.partition
        if data.error_code == ErrorCode.FENCED_LEADER_EPOCH and partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.broker_id, leader_epoch=partition.leader_epoch
            )


def _for_old_client(version: int, read: FetchRead) -> None:
    """Replace codes and record formats that a client of this version does not know."""
    for target, data, _ in read.entries:
        if data.error_code:
            if data.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif version < FIRST_VERSION_WITH_MAGIC_2:
            code = _refusal_of_format(target)
            if code:
                data.error_code = code
                data.high_watermark = -1
                data.records = b""


def _refusal_of_format(target: FetchTarget) -> ErrorCode:
    """The code that refuses to convert data of this topic; NONE (falsy) if it may be converted."""
    partition = target.partition
    if partition is None:
        return ErrorCode.NONE
    config = partition.log.config
    if config.compression_type == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if not config.message_downconversion_enable:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE
