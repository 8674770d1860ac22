"""Produce (key 0): append record batches.

Behaviour
* The handler appends to partitions in the order of the request, and each has its own result: a
  refused batch does not affect the others. A partition that is named twice gets two appends and two
  results, in that order (Kafka silently drops all but the last).
* acks=1 and acks=0 are done once the leader has appended. acks=-1 needs `min.insync.replicas`
  before the append and waits for the high watermark (S-APP-8), which moves at once if the leader is
  alone in the ISR.
* acks=0 has no response; if anything failed, the connection is closed, because nothing else can
  tell the client.
* A thread writes batches of 1.25 MB and more, and all batches that must queue behind them. If a
  look at the records of a batch does not suffice, a thread or a child process opens the batch first
  (`Partition.append_as_leader`, `batch_opening`).
* After `TURN_BYTES` the other connections have a turn.
* A duplicate of an idempotent producer gets the offsets of the first time (S-APP-10).
* Only `__admin_client` may write to internal topics; others get INVALID_TOPIC_EXCEPTION (S-APP-11).
* A topic that the client may not write to is TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
  A request with a transactional batch is refused whole, with TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
  if the client may not write with its transactional id.
* A transactional batch is appended only if its partition was added to the transaction (KIP-890; see
  `TransactionGate`), else it is INVALID_TXN_STATE. Without a transactional id the batch is refused
  with TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes
* v0-2: magic 0 and 1, converted by the log. v3+: exactly one batch of magic 2.
* v0-3 do not know KAFKA_STORAGE_ERROR; they get NOT_LEADER_OR_FOLLOWER.
* v0-6: zstd is refused with UNSUPPORTED_COMPRESSION_TYPE (KIP-110).
* v8+: error message, and the records that made the batch fail (KIP-467).
* v10+: leader hints (KIP-951) are never sent; a client learns of the leader by Metadata.
* v11+: TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE.
* v12+: `transaction.version` 2. The request itself adds its partitions to the transaction.
* v13: topics by id; UNKNOWN_TOPIC_ID.

Benchmarks measure the broker by this path, so it builds nothing per partition but the result.
"""

import logging
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from broker.api_facts import Api
from broker.cluster.image import INTERNAL_TOPICS
from broker.coordinator.transaction.gate import TransactionGate
from broker.coordinator.transaction.verification import Verified
from broker.quotas.throttle import Charged
from broker.replication.delayed_produce import Awaited, DelayedProduce
from broker.replication.failures import REFUSALS, Refusal, refusal_of
from broker.replication.partition import ALL_IN_SYNC, THREADED_APPEND_BYTES, Partition
from broker.replication.produce_failures import EVERYDAY, count_failure, refuse, topic_refused
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext, reply_of
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.records.compression import CompressionType
from protocol.records.errors import RecordsError
from protocol.records.header import CODEC_MASK, KIND_OFFSET, MAGIC_OFFSET, TRANSACTIONAL_BIT
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.log.opening import Opening
from storage.log.results import AppendInfo
from storage.log.validation import FIRST_ZSTD_PRODUCE, check_codec
from storage.waits import PAUSE, Work

ADMIN_CLIENT: Final = "__admin_client"
"""The client id with which Kafka's tools may write to internal topics (`AdminUtils`)."""

FIRST_VERSION_WITH_ABORTABLE: Final = 11
FIRST_VERSION_OF_VERSION_2: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13

TURN_BYTES: Final = THREADED_APPEND_BYTES
"""The most bytes written in one turn; a batch that would exceed it waits for the next turn."""

_VALID_ACKS: Final = frozenset((-1, 0, 1))
_NO_OFFSET: Final = -1
_WRITE: Final = Operation.WRITE
_TOPIC: Final = ResourceType.TOPIC
_NONE_DENIED: Final[Collection[str]] = frozenset()
_ODD_ACKS: Final = Refusal(ErrorCode.INVALID_REQUIRED_ACKS, None, [])
_NOT_YOUR_TRANSACTION: Final = Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None, [])
_DENIED: Final = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, [])

_ZSTD: Final = int(CompressionType.ZSTD)

_Response = ProduceResponse
_TopicReply = TopicProduceResponse
_PartitionReply = PartitionProduceResponse
_Reply = ProduceResponse | None

log = logging.getLogger(__name__)


API: Final = Api(
    key=ApiKey.PRODUCE,
    versions=(0, 13),
    most_elements=10_000,
    in_workers=True,
    charged=Charged.PRODUCE,
    # KafkaApis.handleProduceRequest
    asks=(
        Question(ResourceType.TRANSACTIONAL_ID, Operation.WRITE),
        Question(ResourceType.TOPIC, Operation.WRITE),
    ),
    make=lambda s: ProduceHandler(
        s.replica_manager,
        TransactionGate(s.transaction_coordinator, s.remote_coordinators),
        allowed=s.allowed,
    ),
)


class _Later(NamedTuple):
    """An append that has to wait for a thread, for its turn, or for its batch to be opened."""

    partition: Partition
    records: memoryview | bytes
    reply: PartitionProduceResponse
    opening: Opening | None
    """The opening of the batch, if the look at it has found that it needs one."""


class _Progress:
    """The state of one request: results so far, and the appends that wait."""

    __slots__ = (
        "appended",
        "awaited",
        "denied",
        "failed",
        "later",
        "not_added",
        "queued",
        "room",
        "topics",
        "verified",
    )

    def __init__(self, denied: Collection[str]) -> None:
        self.denied = denied
        """Topics that the client may not write to."""
        self.not_added: KafkaError | None = None
        """The reason why partitions could not be added to the transaction (v12)."""
        self.verified: Verified | None = None
        """The answer of a coordinator on another broker about the transaction."""
        self.topics: list[TopicProduceResponse] = []
        self.appended: list[Partition] = []
        self.awaited: list[Awaited] = []
        self.later: list[_Later] = []
        self.queued: set[Partition] = set()
        """The partitions in `later`: further batches for them must queue behind."""
        self.room = TURN_BYTES
        """Bytes that may still be written in this turn."""
        self.failed = False

    def note_appended(
        self, partition: Partition, reply: PartitionProduceResponse, info: AppendInfo
    ) -> None:
        """Fill the reply for a batch, and wait for the other replicas if there are any."""
        reply.base_offset = info.first_offset
        reply.log_append_time_ms = info.log_append_time
        reply.log_start_offset = info.log_start_offset
        self.appended.append(partition)
        if not partition.alone:
            self.awaited.append(Awaited(partition, info.last_offset + 1, reply))

    def put_off(self, later: _Later) -> None:
        """Queue an append that this turn does not make."""
        self.later.append(later)
        self.queued.add(later.partition)


class ProduceHandler:
    """Appends the batches of a request to their partitions; with acks=-1 waits for replicas."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        gate: TransactionGate,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._replicas = replica_manager
        self._gate = gate
        self._find = replica_manager.find
        self._wake = replica_manager.wake

    def __call__(self, ctx: RequestContext, request: ProduceRequest) -> _Reply | Work[_Reply]:
        """The response, None for acks=0; work that returns it if it has to wait."""
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            self._name_topics(request)
        denied = _NONE_DENIED
        allowed = self._allowed
        if (
            allowed is not None
            and _is_any_transactional(request)
            and not _may_use_id(ctx, request, allowed)
        ):
            return self._refused(ctx, request, _NOT_YOUR_TRANSACTION)
        if ctx.large or request.transactional_id is not None:
            return self._admitted(ctx, request)
        if allowed is not None:
            denied = _denied(ctx, request.topic_data, allowed)
        if request.acks not in _VALID_ACKS:
            return self._odd_acks(ctx, request, denied)
        progress = _Progress(denied)
        self._append(ctx, request, progress)
        if progress.later:
            return self._answered_later(ctx, request, progress)
        return self._answered(ctx, request, progress)

    async def _admitted(self, ctx: RequestContext, request: ProduceRequest) -> _Reply:
        """The response to a request that is large, or whose transaction must be looked up first."""
        denied = _NONE_DENIED
        if self._allowed is not None:
            denied = await _denied_in_turns(ctx, request, self._allowed)
        if request.acks not in _VALID_ACKS:
            return self._odd_acks(ctx, request, denied)
        progress = _Progress(denied)
        if request.transactional_id is not None:
            await self._prepare(ctx.api_version, request, request.transactional_id, progress)
        try:
            self._append(ctx, request, progress)
            if progress.later:
                await self._append_later(ctx, request, progress)
        finally:
            if progress.verified is not None:
                progress.verified.release()
        reply: _Reply = await reply_of(self._answered(ctx, request, progress))
        return reply

    async def _answered_later(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress
    ) -> _Reply:
        await self._append_later(ctx, request, progress)
        reply: _Reply = await reply_of(self._answered(ctx, request, progress))
        return reply

    def _answered(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress
    ) -> _Reply | Work[_Reply]:
        """Wake the waits for the appended records; answer as `__call__` does."""
        wake = self._wake
        for partition in progress.appended:
            wake(partition)
        if request.acks == 0:
            self._close_if_failed(ctx, progress)
            return None
        if progress.awaited and request.acks == ALL_IN_SYNC:
            return self._replicated(ctx, request, progress)
        response = _Response()
        response.responses = progress.topics
        return response

    def _name_topics(self, request: ProduceRequest) -> None:
        for topic in request.topic_data:
            topic.name = self._replicas.topic_name(topic.topic_id)

    async def _prepare(
        self, version: int, request: ProduceRequest, transactional_id: str, progress: _Progress
    ) -> None:
        """Add the partitions that the transaction does not have yet (v12), and ask a coordinator on
        another broker whether the transaction has them."""
        gate = self._gate
        adds, remote = version >= FIRST_VERSION_OF_VERSION_2, gate.is_remote(transactional_id)
        if not (adds or remote):
            return
        batches = [
            (partition, data.records)
            for topic in request.topic_data
            if topic.name not in progress.denied
            for data in topic.partition_data
            if data.records is not None
            and (partition := self._find((topic.name, data.index))) is not None
            and _is_transactional(data.records)
        ]
        if adds:
            progress.not_added = await gate.add(transactional_id, batches)
        if remote and progress.not_added is None:
            progress.verified = await gate.verified(transactional_id, batches)

    def _append(self, ctx: RequestContext, request: ProduceRequest, progress: _Progress) -> None:
        """Append the batches that can be appended now, in the request's order; note the others."""
        acks = request.acks
        version = ctx.api_version
        find = self._find
        topics = progress.topics
        denied = progress.denied
        room = progress.room
        for topic in request.topic_data:
            name = topic.name
            if denied and name in denied:
                progress.failed = True
                topics.append(topic_refused(topic, _DENIED, version))
                continue
            topic_reply = _TopicReply()
            topic_reply.name = name
            topic_reply.topic_id = topic.topic_id
            topic_reply.partition_responses = replies = []
            topics.append(topic_reply)
            special = version < FIRST_ZSTD_PRODUCE or name in INTERNAL_TOPICS
            for data in topic.partition_data:
                index = data.index
                records = data.records
                partition = find((name, index))
                reply = _PartitionReply()
                reply.index = index
                replies.append(reply)
                try:
                    if partition is None or records is None:
                        raise self._absent(name, index, partition, version)
                    partition.statistics.total_produce_requests += 1
                    size = len(records)
                    if special or (size > KIND_OFFSET and records[KIND_OFFSET] & TRANSACTIONAL_BIT):
                        self._check_special(name, partition, records, ctx, request, progress)
                    if (
                        size > room
                        or size >= partition.threaded_append_bytes
                        or partition.appending
                        or partition in progress.queued
                    ):
                        progress.put_off(_Later(partition, records, reply, None))
                        continue
                    room -= size  # even if it is refused, because checking it takes time, too
                    info = partition.append_as_leader_nowait(
                        records, required_acks=acks, request_version=version
                    )
                except REFUSALS as error:
                    self._failed(progress, partition, records, reply, error, version)
                else:
                    if isinstance(info, Opening):
                        progress.put_off(_Later(partition, records, reply, info))
                        continue
                    progress.note_appended(partition, reply, info)
        progress.room = room

    async def _append_later(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress
    ) -> None:
        """Make the appends that have to wait, one after the other."""
        try:
            for later in progress.later:
                size = len(later.records)
                if size > progress.room:
                    await PAUSE
                    progress.room = TURN_BYTES
                progress.room -= size
                await self._append_one(ctx, request, progress, later)
        except BaseException:  # for example, the client disconnected: no reply, but the appends
            for partition in progress.appended:
                self._wake(partition)
            raise

    async def _append_one(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress, later: _Later
    ) -> None:
        version = ctx.api_version
        partition, records, reply, opening = later
        try:
            info = await partition.append_as_leader(
                records,
                required_acks=request.acks,
                request_version=version,
                admit=partial(self._admit, partition, records, request, version, progress),
                opening=opening,
            )
        except REFUSALS as error:
            self._failed(progress, partition, records, reply, error, version)
        else:
            progress.note_appended(partition, reply, info)

    async def _replicated(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress
    ) -> ProduceResponse:
        """The response, when all replicas in sync have the appended batches, or the time is up.

        `DelayedProduce` writes the outcome into the replies.
        """
        operation = DelayedProduce(progress.awaited)
        if not operation.try_complete():
            ctx.released = True
            keys = [waiting.partition.topic_partition for waiting in progress.awaited]
            timeout_s = max(request.timeout_ms, 0) / 1000
            await self._replicas.purgatories.produce.wait(operation, keys, timeout_s)
        return _Response(responses=progress.topics)

    # ------------------------------------------------------------------ special topics and batches

    def _check_special(
        self,
        topic: str,
        partition: Partition,
        records: memoryview | bytes,
        ctx: RequestContext,
        request: ProduceRequest,
        progress: _Progress,
    ) -> None:
        """Make the checks for internal topics, old versions and transactional batches.

        Raises KafkaError.
        """
        if topic in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}"
            )
        if len(records) <= KIND_OFFSET or records[MAGIC_OFFSET] != 2:
            return
        attributes = records[KIND_OFFSET]
        if attributes & CODEC_MASK == _ZSTD:
            check_codec(_ZSTD, ctx.api_version)
        self._admit(partition, records, request, ctx.api_version, progress)

    def _admit(
        self,
        partition: Partition,
        records: memoryview | bytes,
        request: ProduceRequest,
        version: int,
        progress: _Progress,
    ) -> None:
        """Raise KafkaError if a transactional batch may not be appended now."""
        if _is_transactional(records):
            self._gate.admit(
                partition,
                records,
                request.transactional_id,
                knows_abortable=version >= FIRST_VERSION_WITH_ABORTABLE,
                begins_at_zero=version >= FIRST_VERSION_OF_VERSION_2,
                not_added=progress.not_added,
                verified=progress.verified,
            )

    # ------------------------------------------------------------------ failures

    def _absent(
        self, topic: str, index: int, partition: Partition | None, version: int
    ) -> KafkaError:
        """The refusal for a partition that this broker does not have, or that got no records."""
        if partition is None:
            self._replicas.topic_statistics.unattributed.total_produce_requests += 1
            if version >= FIRST_VERSION_WITH_TOPIC_IDS and not topic:
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id.")
            return self._replicas.refusal(TopicPartition(topic, index))
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch per "
            "partition",
        )

    def _failed(
        self,
        progress: _Progress,
        partition: Partition | None,
        records: memoryview | bytes | None,
        reply: PartitionProduceResponse,
        error: KafkaError | RecordsError,
        version: int,
    ) -> None:
        """Write the refusal of one partition's append into its reply, and count it."""
        progress.failed = True
        refusal = refusal_of(error)
        code = refusal.code
        if partition is not None:
            if isinstance(error, StorageError):
                self._replicas.storage_failed(partition, error)
            count_failure(partition, refusal, 0 if records is None else len(records))
            if code not in EVERYDAY:
                reply.log_start_offset = partition.log.log_start_offset
        refuse(reply, refusal, version)

    def _odd_acks(
        self, ctx: RequestContext, request: ProduceRequest, denied: Collection[str]
    ) -> ProduceResponse:
        """The response to a request whose acks are none of 0, 1 and -1."""
        version = ctx.api_version
        response = _Response()
        response.responses = topics = []
        for topic in request.topic_data:
            if topic.name in denied:
                topics.append(topic_refused(topic, _DENIED, version))
                continue
            reply = topic_refused(topic, _ODD_ACKS, version)
            for one in reply.partition_responses:
                if self._find((topic.name, one.index)) is None:
                    absent = self._absent(topic.name, one.index, None, version)
                    refuse(one, refusal_of(absent), version)
            topics.append(reply)
        return response

    def _refused(
        self, ctx: RequestContext, request: ProduceRequest, refusal: Refusal
    ) -> ProduceResponse | None:
        """The response with one refusal for every partition; None (acks=0)."""
        if request.acks == 0:
            self._close(ctx)
            return None
        response = _Response()
        response.responses = [
            topic_refused(topic, refusal, ctx.api_version) for topic in request.topic_data
        ]
        return response

    def _close_if_failed(self, ctx: RequestContext, progress: _Progress) -> None:
        """Close the connection after a failure, which is the only answer with acks=0."""
        if progress.failed:
            self._close(ctx)

    def _close(self, ctx: RequestContext) -> None:
        log.info(
            "Closing the connection of client %r: a produce request with acks=0 failed "
            "(correlation id %d)",
            ctx.client_id,
            ctx.correlation_id,
        )
        ctx.close_connection = True

    def error_response(
        self, ctx: RequestContext, request: ProduceRequest, code: ErrorCode
    ) -> ProduceResponse | None:
        """`code` for every partition; None for acks=0."""
        return self._refused(ctx, request, Refusal(code, None, []))


def _may_use_id(ctx: RequestContext, request: ProduceRequest, allowed: Permissions) -> bool:
    """Whether the request names a transactional id with which the client may write."""
    owner = request.transactional_id
    return owner is not None and allowed(ctx, _WRITE, ResourceType.TRANSACTIONAL_ID, owner)


def _denied(
    ctx: RequestContext, topics: Iterable[TopicProduceData], allowed: Permissions
) -> Collection[str]:
    """The topics that the client may not write to."""
    denied: set[str] | None = None
    for topic in topics:
        name = topic.name
        if not name and ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            continue  # an id that no topic has
        if not allowed(ctx, _WRITE, _TOPIC, name, len(topic.partition_data)):
            if denied is None:
                denied = set()
            denied.add(name)
    return _NONE_DENIED if denied is None else denied


async def _denied_in_turns(
    ctx: RequestContext, request: ProduceRequest, allowed: Permissions
) -> Collection[str]:
    """`_denied` for a request that may name thousands of topics."""
    denied: set[str] = set()
    for topic in request.topic_data:
        denied.update(_denied(ctx, (topic,), allowed))
        await PAUSE
    return denied


def _is_any_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > KIND_OFFSET
                and records[KIND_OFFSET] & TRANSACTIONAL_BIT
                and _is_transactional(records)
            ):
                return True
    return False


def _is_transactional(records: memoryview | bytes) -> bool:
    return (
        len(records) > KIND_OFFSET
        and records[KIND_OFFSET] & TRANSACTIONAL_BIT != 0
        and records[MAGIC_OFFSET] == 2
    )
