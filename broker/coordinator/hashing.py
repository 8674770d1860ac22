"""Which partition of a coordinator's topic a group or transactional id belongs to.

Kafka uses Java's `String.hashCode`, so this is part of the on-disk format: another broker that gets
the directory must find a group in the same partition.
"""

from broker.cluster.java_hash import java_string_hash, slot_of


def coordinator_partition(key: str, partition_count: int) -> int:
    """Return `Utils.abs(hashCode) % count`."""
    return slot_of(java_string_hash(key), partition_count)
