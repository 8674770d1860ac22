"""Frames of requests that several cases send."""

import os
import struct
import time
from collections.abc import Iterable

from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.wire_client import request_frame

PRODUCE, FETCH = 9, 11
"""Versions."""
SMALL = 820
"""Bytes of the value in a request of 0.9 KB."""


def batch_of(size: int, records: int = 1) -> bytes:
    """A batch of records with random values of this size."""
    now = int(time.time() * 1000)
    return build_batch([(now, None, os.urandom(size), ()) for _ in range(records)])


def produce_frame(topic: str, partitions: Iterable[int], batch: bytes, acks: int = -1) -> bytes:
    """A Produce request with the batch for each partition."""
    data = [PartitionProduceData(index=index, records=batch) for index in partitions]
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        transactional_id=None,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    return request_frame(ApiKey.PRODUCE, PRODUCE, request)


def fetch_frame(topic: str, offset: int, max_bytes: int, max_wait_ms: int) -> bytes:
    """A Fetch request of partition 0 outside of a session."""
    made = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[made])],
    )
    return request_frame(ApiKey.FETCH, FETCH, request)


def position_of(frame: bytes, mark: int) -> int:
    """Return where the frame has this number of 8 bytes, which nothing else in it is."""
    at = frame.index(struct.pack(">q", mark))
    assert frame.count(struct.pack(">q", mark)) == 1
    return at
