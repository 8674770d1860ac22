"""TxnOffsetCommit (key 28): store the offsets that a group has read up to, in a transaction.

Behaviour (S-TXN-5)
* The offsets are written to `__consumer_offsets` as one transactional batch (very many as several,
  decision 40), and become visible with the transaction's commit marker.
* The whole request is refused if the client may not write with the transactional id, or not read in
  the group. A topic that the client may not read is TOPIC_AUTHORIZATION_FAILED, whether it exists
  or not.
* Each partition is checked on its own, first for whether it exists: UNKNOWN_TOPIC_OR_PARTITION. All
  that exist get the code with which the group or the transaction coordinator refuses them, or else
  OFFSET_METADATA_TOO_LARGE, or are committed.
* An empty group id, which OffsetCommit accepts, is such a refusal: INVALID_GROUP_ID.
* The partition of `__consumer_offsets` must be part of the transaction (AddOffsetsToTxn, KIP-890).

Version notes
* v0-1: clients do not handle COORDINATOR_LOAD_IN_PROGRESS, so they get COORDINATOR_NOT_AVAILABLE.
* v3+: generation, member id and instance id fence a zombie (KIP-447): ILLEGAL_GENERATION,
  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
* v4+: TRANSACTION_ABORTABLE; older versions get INVALID_TXN_STATE.
* v5+: the request itself adds the partition of `__consumer_offsets` to the transaction.
* v6: topics by id; UNKNOWN_TOPIC_ID.
"""

from typing import Final

from broker.api_facts import Api
from broker.cluster.image import Found, MetadataImage
from broker.coordinator.group.checked_commits import CheckedCommits
from broker.coordinator.group.data.values import CommitRequest, PartitionCommit, TransactionalCommit
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.gate import NOT_NOW, translated
from broker.coordinator.transaction.state import VERSION_2
from broker.coordinator.transaction.verification import Verified
from broker.coordinator.transactional_commits import TransactionalCommits, TransactionRefused
from broker.request import RequestContext
from broker.security.access import (
    READ_GROUP,
    WRITE_TRANSACTION,
    Operation,
    Question,
    ResourceType,
)
from broker.security.named_topics import NamedTopics
from broker.security.permissions import Permissions
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from storage.waits import PAUSE

FIRST_VERSION_WITH_LOADING: Final = 2
FIRST_VERSION_WITH_ABORTABLE: Final = 4
FIRST_VERSION_OF_VERSION_2: Final = 5
FIRST_VERSION_WITH_TOPIC_IDS: Final = 6


API: Final = Api(
    key=ApiKey.TXN_OFFSET_COMMIT,
    versions=(0, 6),
    # KafkaApis.handleTxnOffsetCommitRequest
    accesses=(WRITE_TRANSACTION, READ_GROUP),
    asks=(Question(ResourceType.TOPIC, Operation.READ),),
    make=lambda s: TxnOffsetCommitHandler(
        TransactionalCommits(
            s.group_coordinator,
            s.transaction_coordinator,
            s.remote_coordinators,
            s.replica_manager.partition,
        ),
        s.image,
        allowed=s.allowed,
    ),
)


class TxnOffsetCommitHandler:
    """Checks offsets that are committed in a transaction, and hands them to the coordinators."""

    def __init__(
        self,
        commits: TransactionalCommits,
        image: MetadataImage,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._topics = NamedTopics(image, allowed, Operation.READ)
        self._commits = commits

    async def __call__(
        self, ctx: RequestContext, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse:
        """The response, when the offsets are durable; very many are committed as OffsetCommit's."""
        topics: list[TxnOffsetCommitResponseTopic] = []
        response = TxnOffsetCommitResponse(topics=topics)
        checked: CheckedCommits[TxnOffsetCommitResponsePartition] = CheckedCommits(
            self._commits.metadata_max_length, TxnOffsetCommitResponsePartition, large=ctx.large
        )
        for asked in request.topics:
            results = await checked.check_in_turns(asked.partitions, self._find(ctx, asked))
            topics.append(_result_of(asked, results))
        if not checked.accepted and not checked.too_long:
            return response
        ctx.released = True
        code = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
        verified = None
        if code is ErrorCode.NONE:
            try:
                verified = await self._verified(ctx.api_version, request)
            except KafkaError as error:
                code = error.code
        try:
            for commits, accepted in checked.batches():
                if code is ErrorCode.NONE:
                    work = self._commit(ctx.api_version, request, tuple(commits), verified)
                    written = begin(work)
                    # The batches of a large request are all written, even if the client leaves.
                    code = await (written if ctx.large else written.parked())
                _settle(accepted, ctx.api_version, code)
                if ctx.large:
                    await PAUSE
        finally:
            if verified is not None:
                verified.release()
        _settle(checked.too_long, ctx.api_version, code)
        return response

    async def _verified(self, version: int, request: TxnOffsetCommitRequest) -> Verified | None:
        """The answer of a transaction coordinator on another broker, if any. Raises KafkaError."""
        return await self._commits.verified(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            request.group_id,
            version=VERSION_2 if version >= FIRST_VERSION_OF_VERSION_2 else 0,
        )

    def _find(self, ctx: RequestContext, asked: TxnOffsetCommitRequestTopic) -> Found:
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return self._topics.by_id(ctx, asked.topic_id)
        return self._topics.by_name(ctx, asked.name)

    async def _commit(
        self,
        version: int,
        request: TxnOffsetCommitRequest,
        commits: tuple[PartitionCommit, ...],
        verified: Verified | None,
    ) -> ErrorCode:
        """Hand the offsets to the coordinators; return the code for the client."""
        knows_version_2 = version >= FIRST_VERSION_OF_VERSION_2
        try:
            return await self._commits.commit(
                request.transactional_id,
                TransactionalCommit(
                    commit=_request_of(request, commits),
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                ),
                version=VERSION_2 if knows_version_2 else 0,
                verified=verified,
            )
        except TransactionRefused as error:
            if knows_version_2 and error.code in NOT_NOW:
                return error.code
            knows_abortable = version >= FIRST_VERSION_WITH_ABORTABLE
            return translated(error.code, knows_abortable=knows_abortable).code

    def error_response(
        self, ctx: RequestContext, request: TxnOffsetCommitRequest, code: ErrorCode
    ) -> TxnOffsetCommitResponse:
        """`code` for every partition."""
        return TxnOffsetCommitResponse(
            topics=[
                _result_of(
                    topic,
                    [
                        TxnOffsetCommitResponsePartition(
                            partition_index=one.partition_index, error_code=code
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _result_of(
    asked: TxnOffsetCommitRequestTopic, results: list[TxnOffsetCommitResponsePartition]
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=asked.name, topic_id=asked.topic_id, partitions=results
    )


def _request_of(
    request: TxnOffsetCommitRequest, commits: tuple[PartitionCommit, ...]
) -> CommitRequest:
    return CommitRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        partitions=commits,
    )


def _settle(results: list[TxnOffsetCommitResponsePartition], version: int, code: ErrorCode) -> None:
    if code is ErrorCode.NOT_ENOUGH_REPLICAS:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < FIRST_VERSION_WITH_LOADING:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code is not ErrorCode.NONE:
        for result in results:
            result.error_code = code
