"""Requests to a connection with fake handlers, and what these answer."""

from typing import Any

from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.produce_requests import one_batch
from tests.support.wire_client import request_frame

HEARTBEAT, FETCH, PRODUCE = ApiKey.HEARTBEAT, ApiKey.FETCH, ApiKey.PRODUCE


def heartbeat(correlation_id: int, generation: int = 0) -> bytes:
    request = HeartbeatRequest(generation_id=generation)
    return request_frame(HEARTBEAT, 4, request, correlation_id=correlation_id)


def echo(ctx: RequestContext, request: Any) -> Any:
    """The throttle time carries the generation back."""
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


def produce_frame(payload: bytes, correlation_id: int = 1) -> bytes:
    request = one_batch("t", payload, acks=1, timeout_ms=1)
    return request_frame(PRODUCE, 9, request, correlation_id=correlation_id)


def fetch_reply(*records: Any) -> Any:
    partitions = [PartitionData(partition_index=n, records=r) for n, r in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
