"""The records of `__transaction_state`, in Kafka's own format.

    key    int16 version 0, transactional id
    value  int16 version 0 or 1, body; null: tombstone

Both versions are read. A broker that stands alone writes version 1 for every owner, as Kafka 4 does
once transaction.version is finalized at 1 or above: it is flexible, carries the fields of
transactions of version 2 (KIP-890), and is read by Kafka since 3.3. In a cluster no feature is
finalized, so version 0 is written; there are no transactions of version 2 then. The partitions of
an Empty value are null, as in Kafka; those of others are sorted, where Kafka has the order of a
hash table.
"""

from typing import Any

from broker.coordinator.transaction.state import (
    TransactionRecord,
    TransactionState,
    TransactionValue,
)
from protocol.errors import ProtocolError
from protocol.messages.coordinator_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from protocol.messages.versioned import decode_versioned, encode_versioned, peek_version
from protocol.types import TopicPartition

KEY_VERSION = 0
FLEXIBLE_VALUE_VERSION = 1


def encode_record(
    record: TransactionRecord, version: int = FLEXIBLE_VALUE_VERSION
) -> tuple[bytes, bytes | None]:
    """Return key and value, in this version, as they are appended."""
    value = record.value
    return encode_key(record.key), None if value is None else encode_value(value, version)


def decode_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Decode a record; None for an unknown kind.

    Raises ProtocolError when it cannot be read.
    """
    transactional_id = decode_key(key)
    if transactional_id is None:
        return None
    return TransactionRecord(transactional_id, None if value is None else decode_value(value))


def encode_key(transactional_id: str) -> bytes:
    """Return the key of an id's records."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return encode_versioned(TransactionLogKey, KEY_VERSION, key)


def encode_value(value: TransactionValue, version: int = FLEXIBLE_VALUE_VERSION) -> bytes:
    """Return the value as it is appended."""
    message = TransactionLogValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.timeout_ms,
        transaction_status=value.state,
        transaction_partitions=(
            None if value.state is TransactionState.EMPTY else _by_topic(value.partitions)
        ),
        transaction_last_update_timestamp_ms=value.updated_ms,
        transaction_start_timestamp_ms=value.start_ms,
    )
    message.previous_producer_id = value.previous_producer_id
    message.next_producer_id = value.next_producer_id
    message.client_transaction_version = value.client_version
    return encode_versioned(TransactionLogValue, version, message)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [
        PartitionsSchema(topic=topic, partition_ids=numbers) for topic, numbers in topics.items()
    ]


def decode_key(key: bytes) -> str | None:
    """Return the transactional id; None for an unknown kind of record. Raises ProtocolError."""
    if peek_version(key) != KEY_VERSION:
        return None
    _, found = decode_versioned(TransactionLogKey, key)
    name: str = found.transactional_id
    return name


def decode_value(data: bytes) -> TransactionValue:
    """Decode a value. Raises ProtocolError when it cannot be read."""
    _, value = decode_versioned(TransactionLogValue, data)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise ProtocolError(f"unknown transaction status {value.transaction_status}") from None
    return TransactionValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
