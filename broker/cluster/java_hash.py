"""Java's `String.hashCode`, by which Kafka spreads things over partitions and connections, and its
`String.length`, by which it limits texts.

Each thing must land where a Kafka broker would put it: `broker.coordinator.hashing` and
`broker.replication.fetching.assignment` use the hash.
"""

from typing import Final

SMALLEST_INT: Final = -0x8000_0000


def java_string_hash(text: str) -> int:
    """Return `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return as_int(value)


def java_length(text: str) -> int:
    """Return `String.length`: the number of UTF-16 code units, of which an emoji has two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def as_int(value: int) -> int:
    """Return `value` as Java's int arithmetic would leave it."""
    value &= 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def slot_of(value: int, count: int) -> int:
    """Return `Utils.abs(value) % count`; Kafka's abs of the smallest number is 0."""
    return 0 if value == SMALLEST_INT else abs(value) % count
