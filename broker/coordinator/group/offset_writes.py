"""Writes offsets to `__consumer_offsets`, and shows them when they are durable (S-GRP-4).

What is being written is *in flight* and does not expire; what belongs to a transaction is pending
from the moment it is asked for, until the transaction's marker comes (S-TXN-5).
"""

from collections.abc import Callable, Sequence

from broker.coordinator.group.offsets_topic import TOO_LARGE, OffsetsTopic
from broker.coordinator.group.outcome_executor import OutcomeExecutor
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import Counters
from broker.coordinator.group.stored import OffsetRecord
from broker.coordinator.group.values import TransactionalCommit
from broker.coordinator.write_codes import response_code
from protocol.errors import ErrorCode

Done = Callable[[ErrorCode], None]
"""Takes what the client is told, once."""


class OffsetWrites:
    """Offsets on their way: written, not shown yet, and shown when they are durable."""

    def __init__(self, topic: OffsetsTopic, executor: OutcomeExecutor, counters: Counters) -> None:
        self._topic = topic
        self._executor = executor
        self._counters = counters

    def commit(
        self, partition: int, shard: GroupShard, records: Sequence[OffsetRecord], done: Done
    ) -> None:
        """OffsetCommit: visible when the records are durable."""
        if not records:
            done(ErrorCode.NONE)
            return
        keys = [record.key for record in records]
        offsets = shard.offsets
        offsets.begin_write(keys)

        def written(code: ErrorCode, first_offset: int) -> None:
            offsets.end_write(keys)
            if code is ErrorCode.NONE:
                self._counters.commits += len(records)
                self._executor.replay(partition, shard, records, first_offset)
            else:
                self._counters.commit_failures += len(records)
                code = (
                    ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                    if code in TOO_LARGE
                    else response_code(code)
                )
            done(code)

        self._topic.append(partition, records, written)

    def commit_in_transaction(
        self,
        partition: int,
        shard: GroupShard,
        records: Sequence[OffsetRecord],
        request: TransactionalCommit,
        done: Done,
    ) -> None:
        """TxnOffsetCommit: pending from now on, durable when `done` is told so."""
        if not records:
            done(ErrorCode.NONE)
            return
        pending = [(one.key, one.committed) for one in records if one.committed is not None]
        producer_id = request.producer_id
        for key, committed in pending:
            shard.commits.put_pending(producer_id, key, committed)

        def written(code: ErrorCode, first_offset: int) -> None:
            if code is ErrorCode.NONE:
                self._counters.transactional_commits += len(records)
                for at, (_, committed) in enumerate(pending):
                    committed.record_offset = first_offset + at
            else:
                self._counters.commit_failures += len(records)
                for key, committed in pending:
                    shard.offsets.drop_pending(producer_id, key, committed)
                code = response_code(code)
            done(code)

        self._topic.append(
            partition,
            records,
            written,
            producer_id=producer_id,
            producer_epoch=request.producer_epoch,
            transactional=True,
        )

    def delete(
        self, partition: int, shard: GroupShard, tombstones: Sequence[OffsetRecord], done: Done
    ) -> None:
        """OffsetDelete: gone when the tombstones are durable."""
        if not tombstones:
            done(ErrorCode.NONE)
            return

        def written(code: ErrorCode, first_offset: int) -> None:
            if code is ErrorCode.NONE:
                self._counters.deleted_offsets += len(tombstones)
                self._executor.replay(partition, shard, tombstones, first_offset)
            done(response_code(code))

        self._topic.append(partition, tombstones, written)
