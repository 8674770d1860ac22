"""Produce (key 0): append record batches.

Behaviour
* Partitions are appended to in the order of the request, and each has its own result: a refused
  batch does not affect the others. A partition that is named twice gets two appends and two
  results, in that order (Kafka silently drops all but the last).
* acks=1 and acks=0 are done once the leader has appended. acks=-1 needs `min.insync.replicas`
  before the append and waits for the high watermark (S-APP-8), which moves at once if the leader is
  alone in the ISR.
* acks=0 has no response; if anything failed, the connection is closed, as nothing else can say so.
* Batches of 256 KB and more, and all that must queue behind them, are written in a thread. A batch
  that takes more than a look at its records is opened first, in a thread or a child process
  (`Partition.append_as_leader`, `batch_opening`).
* A duplicate of an idempotent producer is answered with the offsets of the first time (S-APP-10).
* Only `__admin_client` may write to internal topics; others get INVALID_TOPIC_EXCEPTION (S-APP-11).
* A transactional batch is appended only if its partition was added to the transaction (KIP-890; see
  `TransactionGate`), else it is INVALID_TXN_STATE. Without a transactional id it is refused with
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes
* v0-2: magic 0 and 1, converted by the log. v3+: exactly one batch of magic 2.
* v0-3 do not know KAFKA_STORAGE_ERROR; they get NOT_LEADER_OR_FOLLOWER.
* v0-6: zstd is refused with UNSUPPORTED_COMPRESSION_TYPE (KIP-110).
* v8+: error message, and which records made the batch fail (KIP-467).
* v10+: leader hints are never sent, because there is no other leader yet.
* v11+: TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE.
* v12+: `transaction.version` 2. The request itself adds its partitions to the transaction.
* v13: topics by id; UNKNOWN_TOPIC_ID.

The broker is measured by this path: it builds nothing per partition but the result.
"""

import logging
from functools import partial
from typing import Final, NamedTuple

from broker.api_facts import Api
from broker.cluster.image import INTERNAL_TOPICS
from broker.coordinator.transaction.gate import TransactionGate
from broker.replication.delayed_produce import Awaited, DelayedProduce
from broker.replication.failures import REFUSALS, Refusal, refusal_of
from broker.replication.partition import ALL_IN_SYNC, Partition
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import WRITE_TRANSACTION, Operation, topics_by_id_from
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
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
from storage.waits import Signal

ADMIN_CLIENT: Final = "__admin_client"
"""The client id that Kafka's tools may write to internal topics with (`AdminUtils`)."""

FIRST_VERSION_WITH_STORAGE_ERROR: Final = 4
FIRST_VERSION_WITH_ABORTABLE: Final = 11
FIRST_VERSION_OF_VERSION_2: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13

_VALID_ACKS: Final = frozenset((-1, 0, 1))
_NO_OFFSET: Final = -1

_ZSTD: Final = int(CompressionType.ZSTD)

# Expected failures: not in FailedProduceRequestsPerSec, and answered without a log start offset.
_EVERYDAY: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)

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
    ends_with_client=True,
    # KafkaApis.handleProduceRequest. The handler refuses a transactional batch without an id.
    accesses=(
        WRITE_TRANSACTION,
        topics_by_id_from(FIRST_VERSION_WITH_TOPIC_IDS, Operation.WRITE, "topic_data"),
    ),
    make=lambda s: ProduceHandler(s.replica_manager, TransactionGate(s.transaction_coordinator)),
)


class _Later(NamedTuple):
    """An append that has to wait for a thread, for its turn, or for its batch to be opened."""

    partition: Partition
    records: memoryview
    reply: PartitionProduceResponse
    opening: Opening | None
    """If it is known already that the batch has to be opened."""


class _Progress:
    """What has become of one request so far."""

    __slots__ = ("appended", "awaited", "failed", "later", "not_added", "queued", "topics")

    def __init__(self, not_added: KafkaError | None) -> None:
        self.not_added = not_added
        """Why partitions could not be added to the transaction (v12)."""
        self.topics: list[TopicProduceResponse] = []
        self.appended: list[Partition] = []
        self.awaited: list[Awaited] = []
        self.later: list[_Later] = []
        self.queued: set[Partition] = set()
        """The partitions in `later`: further batches for them must queue behind."""
        self.failed = False

    def wait(self, later: _Later) -> None:
        """Queue one more append."""
        self.later.append(later)
        self.queued.add(later.partition)


class ProduceHandler:
    """Appends the batches of a request to their partitions; with acks=-1 waits for replicas."""

    def __init__(self, replica_manager: ReplicaManager, gate: TransactionGate) -> None:
        self._replicas = replica_manager
        self._gate = gate
        self._find = replica_manager.find
        self._wake = replica_manager.wake

    async def __call__(self, ctx: RequestContext, request: ProduceRequest) -> _Reply:
        """The response; None for acks=0."""
        if request.acks not in _VALID_ACKS:
            return self._refused(ctx, request, Refusal(ErrorCode.INVALID_REQUIRED_ACKS, None, []))
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            for topic in request.topic_data:
                topic.name = self._replicas.topic_name(topic.topic_id)
        not_added = None
        if request.transactional_id is not None and ctx.api_version >= FIRST_VERSION_OF_VERSION_2:
            not_added = await self._add(request.transactional_id, request)
        progress = _Progress(not_added)
        self._append(ctx, request, progress)
        if progress.later:
            await self._append_later(ctx, request, progress)
        wake = self._wake
        for partition in progress.appended:
            wake(partition)
        if request.acks == 0:
            if progress.failed:
                self._close(ctx)
            return None
        if progress.awaited and request.acks == ALL_IN_SYNC:
            await self._wait_replicated(ctx, progress.awaited, request.timeout_ms)
        response = _Response()
        response.responses = progress.topics
        return response

    async def _add(self, transactional_id: str, request: ProduceRequest) -> KafkaError | None:
        """Add the partitions that the transaction does not have yet; return why it is refused."""
        return await self._gate.add(
            transactional_id,
            [
                (partition, data.records)
                for topic in request.topic_data
                for data in topic.partition_data
                if data.records is not None
                and (partition := self._find((topic.name, data.index))) is not None
                and _is_transactional(data.records)
            ],
        )

    def _append(self, ctx: RequestContext, request: ProduceRequest, progress: _Progress) -> None:
        """Append what can be appended now, in the order of the request, and note the rest."""
        acks = request.acks
        version = ctx.api_version
        find = self._find
        topics = progress.topics
        for topic in request.topic_data:
            name = topic.name
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
                        size >= partition.threaded_append_bytes
                        or partition.appending
                        or partition in progress.queued
                    ):
                        progress.wait(_Later(partition, records, reply, None))
                        continue
                    info = partition.append_as_leader_nowait(
                        records, required_acks=acks, request_version=version
                    )
                except REFUSALS as error:
                    self._failed(progress, partition, records, reply, error, version)
                else:
                    if isinstance(info, Opening):
                        progress.wait(_Later(partition, records, reply, info))
                        continue
                    reply.base_offset = info.first_offset
                    reply.log_append_time_ms = info.log_append_time
                    reply.log_start_offset = info.log_start_offset
                    progress.appended.append(partition)
                    if not partition.alone:
                        _await(progress, partition, reply, info)

    async def _append_later(
        self, ctx: RequestContext, request: ProduceRequest, progress: _Progress
    ) -> None:
        """Make the appends that have to wait, one after the other."""
        try:
            for later in progress.later:
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
            reply.base_offset = info.first_offset
            reply.log_append_time_ms = info.log_append_time
            reply.log_start_offset = info.log_start_offset
            progress.appended.append(partition)
            _await(progress, partition, reply, info)

    async def _wait_replicated(
        self, ctx: RequestContext, awaited: list[Awaited], timeout_ms: int
    ) -> None:
        """Wait until all replicas in sync have the appended batches, or the time is up.

        The outcome is written into the replies (`DelayedProduce`).
        """
        settled: Signal[None] = Signal()
        operation = DelayedProduce(awaited, settled.fire)
        keys = [waiting.partition.topic_partition for waiting in awaited]
        purgatory = self._replicas.purgatories.produce
        if purgatory.try_complete_else_watch(operation, keys, max(timeout_ms, 0) / 1000):
            return
        ctx.released = True
        try:
            await settled.parked()
        finally:
            operation.abandon()  # if the client has gone
            operation.leave()

    # ------------------------------------------------------------------ special topics and batches

    def _check_special(
        self,
        topic: str,
        partition: Partition,
        records: memoryview,
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
        records: memoryview,
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
            )

    # ------------------------------------------------------------------ failures

    def _absent(
        self, topic: str, index: int, partition: Partition | None, version: int
    ) -> KafkaError:
        """The refusal for a partition that is not here, or for a request without records for it."""
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
        records: memoryview | None,
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
            _count(partition, refusal, 0 if records is None else len(records))
            if code not in _EVERYDAY:
                reply.log_start_offset = partition.log.log_start_offset
        _refuse(reply, refusal, version)

    def _refused(
        self, ctx: RequestContext, request: ProduceRequest, refusal: Refusal
    ) -> ProduceResponse | None:
        """The response with one refusal for every partition; None (acks=0)."""
        if request.acks == 0:
            self._close(ctx)
            return None
        response = _Response()
        response.responses = topics = []
        for topic in request.topic_data:
            topic_reply = _TopicReply()
            topic_reply.name = topic.name
            topic_reply.topic_id = topic.topic_id
            topic_reply.partition_responses = replies = []
            topics.append(topic_reply)
            for data in topic.partition_data:
                reply = _PartitionReply()
                reply.index = data.index
                _refuse(reply, refusal, ctx.api_version)
                replies.append(reply)
        return response

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


def _is_transactional(records: memoryview) -> bool:
    return (
        len(records) > KIND_OFFSET
        and records[MAGIC_OFFSET] == 2
        and records[KIND_OFFSET] & TRANSACTIONAL_BIT != 0
    )


def _await(
    progress: _Progress, partition: Partition, reply: PartitionProduceResponse, info: AppendInfo
) -> None:
    if not partition.alone:
        progress.awaited.append(Awaited(partition, info.last_offset + 1, reply))


def _refuse(reply: PartitionProduceResponse, refusal: Refusal, version: int) -> None:
    code = refusal.code
    if code == ErrorCode.KAFKA_STORAGE_ERROR and version < FIRST_VERSION_WITH_STORAGE_ERROR:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    reply.error_code = code
    reply.base_offset = _NO_OFFSET
    reply.error_message = refusal.message
    if refusal.record_errors:
        reply.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refusal.record_errors
        ]


def _count(partition: Partition, refusal: Refusal, size: int) -> None:
    statistics = partition.statistics
    code = refusal.code
    if code not in _EVERYDAY:
        statistics.failed_produce_requests += 1
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        statistics.bytes_rejected += size
    elif code == ErrorCode.CORRUPT_MESSAGE:
        statistics.invalid_message_crc_records += 1
    elif code == ErrorCode.INVALID_RECORD:
        if refusal.record_errors and "compact" in partition.log.config.cleanup_policy:
            statistics.no_key_compacted_topic_records += len(refusal.record_errors)
        else:
            statistics.invalid_offset_or_sequence_records += 1
