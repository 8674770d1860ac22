"""`__consumer_offsets` as the coordinator writes it: records in, one batch each call."""

from collections.abc import Callable, Sequence
from typing import Any

from broker.coordinator.group.records import encode_record
from broker.coordinator.group.stored import GroupRecord
from broker.coordinator.partition_writer import PartitionWriter
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.types import TopicPartition
from storage.clock import Clock

OFFSETS_TOPIC = "__consumer_offsets"

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class OffsetsTopic:
    """The coordinator's way into `__consumer_offsets`: a batch for each call."""

    def __init__(self, writer: PartitionWriter, clock: Clock, compression: CompressionType) -> None:
        self._writer = writer
        self._clock = clock
        self._compression = compression

    def append(
        self,
        partition: int,
        records: Sequence[GroupRecord],
        done: Callable[[ErrorCode, int], None],
        **producer: Any,
    ) -> None:
        """Append the records as one batch; `done` gets NONE and the first offset, or an error.

        `producer`: what `build_batch` takes for a batch within a transaction.
        """
        now = self._clock.wall_ms()
        batch = build_batch(
            [(now, key, value, ()) for key, value in map(encode_record, records)],
            codec=self._compression,
            **producer,
        )
        self._writer.append(TopicPartition(OFFSETS_TOPIC, partition), batch, done)
