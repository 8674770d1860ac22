"""Fetch (key 1): read record batches, for consumers and followers.

Behaviour
* The request or its fetch session (`fetch_session`, v7+) names the partitions, `read_plan` reads
  them. Records of the answer are slices of the segment files.
* The answer leaves at once if it has `min_bytes`, if `max_wait_ms` is 0, if a partition has an
  error other than an unknown topic, a diverging epoch or a preferred replica, if a fetch offset
  lies in an older segment than the end of what may be read, or if this broker serves none of the
  partitions. Otherwise the request is parked (`delayed_fetch`).
* `fetch.max.bytes` caps `max_bytes` (S-READ-9), and `max_bytes` caps `min_bytes`.
* A follower (replica id >= 0) reads up to the log end. Its fetch offset confirms that it has all
  records below, which may move the high watermark.
* A throttled follower that is not in sync gets no records while the rate is exceeded (`throttle`).
* A fetch of more than `MANY` partitions, named or in its session, is read in turns; it reads again
  after pauses instead of waiting in the purgatory.
* Topics that a consumer may not read are TOPIC_AUTHORIZATION_FAILED, whether they exist or not.
  Each fetch asks the authorizer about all its topics, those in its session included. A denied topic
  does not end the wait for the others. A follower needs CLUSTER_ACTION on the cluster, else
  TOPIC_AUTHORIZATION_FAILED is the code of all its partitions.
* While a quota throttles the client (S-QTA-3), the answer has no data, and the session stays as it
  is. A consumer gets no more bytes than its quota allows after a pause.
* A leader sends a consumer to a replica in the consumer's rack if `replica.selector.class` is set
  (`replica_selector`); a follower serves consumers below its own high watermark (KIP-392, v11+).
* A leader notes offset, log start and broker epoch of a follower even if it has no news for the
  follower, and proposes it for the ISR once it has caught up (`Partition.record_follower_fetch`).

Version notes
* v0-1 get magic 0, v2-3 magic 1: batches are converted (`down_converter`). The code is
  UNSUPPORTED_VERSION if `message.downconversion.enable` is off, and UNSUPPORTED_COMPRESSION_TYPE
  for zstd batches and for topics with `compression.type=zstd` (S-READ-10). From v4 on every client
  gets zstd (KIP-110 refused it below v10; Kafka 4 does not).
* v0-2: limits hold for the first batch, too, which may be cut.
* v0-5 do not know KAFKA_STORAGE_ERROR; they get NOT_LEADER_OR_FOLLOWER.
* v12+: last fetched epoch and diverging epoch. v13+: UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID.
* v15+: the follower's id is in the tagged replica_state.
* v16+: a FENCED_LEADER_EPOCH comes with the partition's leader and epoch (KIP-951).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache, partial
from typing import Final, TypeAlias

from broker.api_facts import Api
from broker.quotas.charging import Charging
from broker.quotas.quotas import Quotas
from broker.replication.answer_size import answer_size
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
from broker.replication.read_plan import (
    Entry,
    FetchParams,
    FetchRead,
    FetchTarget,
    Prefer,
    Withhold,
    refused_entry,
)
from broker.replication.replica_manager import ReplicaManager
from broker.replication.replica_selector import RackAwareSelector, selector_for
from broker.replication.target_lookup import TargetLookup
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.world.stopwatch import Stopwatch
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from protocol.types import ZERO_UUID
from storage.clock import Clock
from storage.waits import PAUSE, sleep

FIRST_VERSION_WITH_MAX_BYTES: Final = 3
FIRST_VERSION_WITH_MAGIC_2: Final = 4
FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6
FIRST_VERSION_WITH_RACKS: Final = 11
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_LEADER_HINTS: Final = 16
FIRST_VERSION_WITH_MAGIC_1: Final = 2

MANY: Final = 5000
"""The most partitions of a fetch that is read without a pause: some ten milliseconds of work."""
LOOK_AGAIN_S: Final = 0.02
"""The least seconds that a larger fetch pauses before it reads again."""
LOOK_AGAIN_AFTER: Final = 4
"""A larger fetch pauses at least this many times as long as its last read took."""


_READ: Final = Operation.READ
_TOPIC: Final = ResourceType.TOPIC
_Response = FetchResponse
_Found: TypeAlias = tuple[FetchContext, FetchParams, FetchRead, list[Entry]]
"""Session, parameters, what was read, and the answers for topics that the client may not read."""
_TopicReply = FetchableTopicResponse


API: Final = Api(
    key=ApiKey.FETCH,
    versions=(0, 18),
    most_elements=10_000,
    in_workers=True,
    ends_with_client=True,
    carries_files=True,
    # KafkaApis.handleFetchRequest
    asks=(
        Question(ResourceType.CLUSTER, Operation.CLUSTER_ACTION),
        Question(ResourceType.TOPIC, Operation.READ),
    ),
    make=lambda s: FetchHandler(
        s.replica_manager,
        s.fetch_sessions,
        s.config.fetch_max_bytes,
        converter=DownConverter(s.looker, s.replica_manager.storage_failed),
        clock=s.clock,
        quotas=s.quotas,
        allowed=s.allowed,
        selector=selector_for(s.config.replica_selector_class, s.image, s.config.broker_id),
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
        quotas: Quotas,
        allowed: Permissions | None = None,
        selector: RackAwareSelector | None = None,
    ) -> None:
        """`selector` sends consumers to other replicas; None: all consumers read here."""
        self._selector = selector
        self._allowed = allowed
        self._replicas = replica_manager
        self._lookup = TargetLookup(replica_manager, clock)
        self._storage_failed = replica_manager.storage_failed
        self._purgatory = replica_manager.purgatories.fetch
        self._sessions = sessions
        self._fetch_max_bytes = fetch_max_bytes
        self._converter = converter
        self._clock = clock
        self._quotas = quotas

    async def __call__(self, ctx: RequestContext, request: FetchRequest) -> FetchResponse:
        """The response, as soon as the fetch is complete or its time is over."""
        ctx.released = True
        charging, most_bytes = self._quotas.charging, self._fetch_max_bytes
        try:
            if charging is None:
                found = await self._find(ctx, request, most_bytes)
            else:
                watch = Stopwatch(self._clock.monotonic)
                if _replica_of(ctx.api_version, request) < 0:
                    most_bytes = charging.most_fetched(ctx, most_bytes)
                found = await watch.time(self._find(ctx, request, most_bytes))
                if _charge(charging, ctx, found, watch.worked_s):
                    return _throttled(found[0])
        except KafkaError as error:
            return self.error_response(ctx, request, error.code)
        version = ctx.api_version
        reply = self._answer(version, *found)
        if version < FIRST_VERSION_WITH_MAGIC_2:
            _, params, read, _ = found
            await self._converter.convert(_with_records(read), _magic_of(version), params.max_bytes)
        return reply

    # ------------------------------------------------------------------ reading

    async def _find(self, ctx: RequestContext, request: FetchRequest, most_bytes: int) -> _Found:
        """Read the partitions of the fetch, as soon as there is enough, or its time is over.

        Raises KafkaError if its session refuses it.
        """
        version = ctx.api_version
        replica_id = _replica_of(version, request)
        params = _params(
            replica_id,
            request.isolation_level,
            request.min_bytes,
            request.max_bytes,
            most_bytes,
            version < FIRST_VERSION_WITH_MAX_BYTES,
            version >= FIRST_VERSION_WITH_RACKS and self._replicas.is_clustered,
            request.replica_state.replica_epoch if replica_id >= 0 else -1,
        )
        named = 0
        for topic in request.topics:
            named += len(topic.partitions)
        made = await _targets_in_turns(version, request) if named > MANY else None
        context = self._sessions.open(request, version, replica_id >= 0, made)
        targets = context.targets
        refused: list[Entry] = []
        if self._allowed is not None:
            targets, refused = await self._authorized(ctx, params, targets, self._allowed)
        shared = self._replicas.shared_reads if version >= FIRST_VERSION_WITH_MAGIC_2 else None
        prefer = None if self._selector is None else _preferrer(self._selector, request, params)
        withhold = None if replica_id < 0 else self._withholder(replica_id)
        read = FetchRead(params, shared, prefer, withhold)
        if len(targets) > MANY:
            new = partial(FetchRead, params, None, prefer, withhold)
            read = await self._read_many(targets, params, request.max_wait_ms, new)
        else:
            self._read(targets, params, read)
            if not read.is_due and request.max_wait_ms > 0:
                parked = DelayedFetch(targets, params, read, withhold)
                if read.entries:  # it keeps no records while it waits
                    read = FetchRead(params, shared, prefer, withhold)
                # This follower's fetch may have raised a high watermark; then a coordinator may
                # have appended to a partition that was read above.
                if replica_id < 0 or not parked.try_complete():
                    wait_s = request.max_wait_ms / 1000
                    await self._purgatory.wait(parked, parked.keys, wait_s)
                self._read_again(targets, params, read)
        return context, params, read, refused

    async def _authorized(
        self,
        ctx: RequestContext,
        params: FetchParams,
        targets: Collection[FetchTarget],
        allowed: Permissions,
    ) -> tuple[Collection[FetchTarget], list[Entry]]:
        """The targets that the client may read, and the answers for the others."""
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if params.replica_id >= 0:
            if allowed(ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
                return targets, []
            return (), [refused_entry(target, code) for target in targets]
        asked = list(targets)
        many = len(asked) > MANY
        names = await self._names(asked)
        denied = set()
        for name, count in Counter(filter(None, names)).items():
            if not allowed(ctx, _READ, _TOPIC, name, count):
                denied.add(name)
            if many:
                await PAUSE
        if not denied:
            return targets, []
        may: list[FetchTarget] = []
        refused: list[Entry] = []
        for target, name in zip(asked, names, strict=True):
            if name in denied:
                refused.append(refused_entry(target, code))
            else:
                may.append(target)
            if many:
                await PAUSE
        return may, refused

    async def _names(self, targets: list[FetchTarget]) -> list[str]:
        """The topic of each target; empty for an id that no topic has."""
        names: list[str] = []
        for target in targets:
            name = target.topic
            if name is None or target.topic_id != ZERO_UUID:
                name = self._replicas.topic_name(target.topic_id)
            names.append(name)
            if len(targets) > MANY:
                await PAUSE
        return names

    async def _read_many(
        self,
        targets: Collection[FetchTarget],
        params: FetchParams,
        max_wait_ms: int,
        new: Callable[[], FetchRead],
    ) -> FetchRead:
        """Read in turns, and again after pauses until the fetch is due, or its time is over."""
        began = self._clock.monotonic()
        until = began + max(max_wait_ms, 0) / 1000
        while True:
            read = new()
            for target in list(targets):
                self._read((target,), params, read)
                await PAUSE
            now = self._clock.monotonic()
            if read.is_due or now >= until:
                return read
            pause = max(LOOK_AGAIN_S, LOOK_AGAIN_AFTER * (now - began))
            await sleep(min(pause, until - now))
            began = self._clock.monotonic()

    def _withholder(self, replica_id: int) -> Withhold | None:
        throttles = self._replicas.throttles
        return None if throttles is None else throttles.withholder(replica_id)

    def _read(self, targets: Iterable[FetchTarget], params: FetchParams, read: FetchRead) -> None:
        """Read `targets`, up to the bytes that `read` has left.

        A follower's offsets are recorded, and requests woken if a high watermark has moved.
        """
        if params.replica_id < 0:
            read.run(targets, self._lookup.for_params(params), self._storage_failed)
            return
        moved: list[Partition] = []

        def lookup(target: FetchTarget) -> Partition:
            return self._lookup.of_follower(target, params, moved)

        changed = self._lookup.without_idle(targets, params, read)
        for target in changed:
            target.partition = None
        read.run(changed, lookup, self._storage_failed)
        for partition in moved:
            self._replicas.wake(partition)

    def _read_again(
        self, targets: Iterable[FetchTarget], params: FetchParams, read: FetchRead
    ) -> None:
        """Read after the wait. A plain lookup suffices, because the arrival of the request has
        recorded the follower's offsets."""
        if params.replica_id >= 0:
            targets = self._lookup.without_idle(targets, params, read)
        read.run(targets, self._lookup.for_params(params), self._storage_failed)

    # ------------------------------------------------------------------ answering

    def _answer(
        self,
        version: int,
        context: FetchContext,
        params: FetchParams,
        read: FetchRead,
        refused: list[Entry],
    ) -> FetchResponse:
        """The response: neighbouring partitions of a topic share its entry."""
        if version < FIRST_VERSION_WITH_STORAGE_ERROR:
            _for_old_client(version, read)
        elif read.urgent and version >= FIRST_VERSION_WITH_LEADER_HINTS:
            _add_leader_hints(read)
        try:
            session_id, entries = context.answer(
                read.entries + refused if refused else read.entries
            )
        except KafkaError as error:
            return _whole_request(error.code)
        by_id = context.by_id
        to_follower = params.replica_id >= 0
        throttles = self._replicas.throttles if to_follower else None
        if throttles is not None and throttles.leader.is_limited:
            throttles.sent(
                (target.partition, size) for target, _, size in entries if target.partition and size
            )
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
                    image = target.partition.state.image  # type: ignore[union-attr]
                    if params.replica_id in image.adding_replicas:
                        statistics.reassignment_bytes_out += size
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


def _charge(charging: Charging, ctx: RequestContext, found: _Found, worked_s: float) -> bool:
    """Charge the client for the records, unless it is a follower; whether it is throttled."""
    context, params, read, _ = found
    if params.replica_id >= 0:
        charging.exempt_fetch(ctx, worked_s)
        return False
    news = context.news(read.entries)
    size = answer_size(ctx.api_version, news, by_id=context.by_id)
    return charging.settle_fetch(ctx, size, worked_s)


def _throttled(context: FetchContext) -> FetchResponse:
    """The response for a throttled client: nothing, and its session stays as it is."""
    response = _Response()
    try:
        response.session_id = context.session_as_it_is()
    except KafkaError as error:
        response.error_code = error.code
    return response


async def _targets_in_turns(version: int, request: FetchRequest) -> dict[Key, FetchTarget] | None:
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
    any_replica: bool,
    broker_epoch: int,
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
        any_replica=any_replica and replica_id < 0,
        broker_epoch=broker_epoch,
    )


def _preferrer(
    selector: RackAwareSelector, request: FetchRequest, params: FetchParams
) -> Prefer | None:
    """The selector's choice of a replica for this client; None for one that reads here."""
    if not request.rack_id or not params.any_replica:
        return None
    return partial(_preferred, selector, request.rack_id)


def _preferred(
    selector: RackAwareSelector, rack: str, target: FetchTarget, partition: Partition
) -> int:
    return selector.select(partition, rack, target.fetch_offset)


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
    """Replace codes and record formats that clients of this version do not know."""
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
