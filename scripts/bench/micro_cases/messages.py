"""The parts of the cases of `micro.py`: versions, and messages of any size."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Run

from protocol.messages import fetch, metadata, produce

NOW = 1_700_000_000_000
PRODUCE, FETCH, METADATA, HEARTBEAT, OFFSET_COMMIT = 12, 12, 12, 4, 9
"""Versions."""

Case = Callable[[Path], Run]
"""Prepares one case in an empty folder of its own."""


def each(operation: Callable[[], object]) -> Run:
    """One call for each operation."""

    def run(count: int) -> None:
        for _ in range(count):
            operation()

    return run


def topics(
    count: int, made: type, partitions: str, ones: list[Any], name: str = "topic"
) -> list[Any]:
    """The topics of a message, all with the same partitions."""
    return [made(**{name: f"topic-{n}", partitions: ones}) for n in range(count)]


def produce_request(count: int, partitions: int, records: Any) -> Any:
    ones = [produce.PartitionProduceData(index=n, records=records) for n in range(partitions)]
    data = topics(count, produce.TopicProduceData, "partition_data", ones, "name")
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data)


def produce_response(count: int, partitions: int) -> Any:
    made = produce.PartitionProduceResponse
    ones = [made(index=n, base_offset=123, log_start_offset=0) for n in range(partitions)]
    answered = topics(count, produce.TopicProduceResponse, "partition_responses", ones, "name")
    return produce.ProduceResponse(responses=answered)


def fetch_request(count: int, offsets: dict[int, int], **fields: Any) -> Any:
    made = partial(fetch.FetchPartition, partition_max_bytes=1 << 20)
    ones = [made(partition=n, fetch_offset=offset) for n, offset in offsets.items()]
    asked = topics(count, fetch.FetchTopic, "partitions", ones)
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    return fetch.FetchRequest(**{**limits, **fields}, topics=asked)


def fetch_response(count: int, records: list[Any]) -> Any:
    marks = {"high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0}
    made = partial(fetch.PartitionData, **marks, aborted_transactions=None)
    ones = [made(partition_index=n, records=data) for n, data in enumerate(records)]
    return fetch.FetchResponse(
        responses=topics(count, fetch.FetchableTopicResponse, "partitions", ones)
    )


def metadata_response(count: int, partitions: int) -> Any:
    made = partial(
        metadata.MetadataResponsePartition, leader_id=1, replica_nodes=[1], isr_nodes=[1]
    )
    ones = [made(partition_index=n) for n in range(partitions)]
    return metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=1,
        topics=topics(count, metadata.MetadataResponseTopic, "partitions", ones, "name"),
    )
