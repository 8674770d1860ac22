"""Which partition of a coordinator's topic a group or transactional id belongs to.

Kafka uses Java's `String.hashCode`, so this is part of the on-disk format: another broker that gets
the directory must find a group in the same partition.
"""


def java_string_hash(text: str) -> int:
    """Return `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def coordinator_partition(key: str, partition_count: int) -> int:
    """Return `Utils.abs(hashCode) % count`; Kafka's abs of the smallest number is 0."""
    value = java_string_hash(key)
    return 0 if value == -0x8000_0000 else abs(value) % partition_count
