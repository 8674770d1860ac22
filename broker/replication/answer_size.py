"""How many bytes a Fetch response would have: the charge to a consumer's quota (S-QTA-3).

`answer_size` computes them from the entries that were read, because a response that the quota does
not allow is never built. The sizes of a response's parts are measured once per version on small
responses.

Source: `FetchResponse.sizeOf`, which adds 4 bytes.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from broker.replication.read_plan import Entry
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

_MORE: Final = 4


class _Sizes(NamedTuple):
    """Bytes."""

    response: int
    """A response without topics."""
    topic: int
    """A topic without name and partitions."""
    partition: int
    """A partition without records and aborted transactions."""
    aborted: int
    compact: bool
    """Whether the length of records is a varint, whose first byte is counted above."""


@lru_cache
def _sizes(version: int) -> _Sizes:
    codec = FetchResponse.codec(version)

    def size(*partitions: PartitionData, topics: int = 1) -> int:
        topic = FetchableTopicResponse(partitions=list(partitions))
        return len(codec.build(FetchResponse(responses=[topic] * topics)))

    plain = PartitionData(aborted_transactions=[], records=b"")
    aborted = PartitionData(aborted_transactions=[AbortedTransaction()], records=b"")
    return _Sizes(
        response=size(topics=0),
        topic=size() - size(topics=0),
        partition=size(plain) - size(),
        aborted=size(aborted) - size(plain),
        compact=FetchResponse.flexible(version),
    )


def answer_size(version: int, entries: Iterable[Entry], *, by_id: bool) -> int:
    """The bytes of a response with these entries. Its own tags, which are few, are left out."""
    sizes = _sizes(version)
    total = sizes.response + _MORE
    last: str | bytes | None = None
    for target, data, size in entries:
        topic = target.topic_id if by_id else target.topic
        if topic != last:
            last = topic
            total += sizes.topic + (0 if by_id else len(target.topic or ""))
        total += sizes.partition + size
        if sizes.compact:
            total += ((size + 1).bit_length() - 1) // 7
        if data.aborted_transactions:
            total += sizes.aborted * len(data.aborted_transactions)
    return total
