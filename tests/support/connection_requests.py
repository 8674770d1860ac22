"""Requests to a connection with fake handlers, and what these answer."""

from typing import Any

from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.schema.lazy import Lazy
from tests.support.produce_requests import one_batch
from tests.support.wire_client import request_frame

HEARTBEAT, FETCH, PRODUCE = ApiKey.HEARTBEAT, ApiKey.FETCH, ApiKey.PRODUCE
DELETE_GROUPS = ApiKey.DELETE_GROUPS


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


def groups(count: int) -> Any:
    """A request of `count` elements."""
    return DeleteGroupsRequest(groups_names=[f"group-{number}" for number in range(count)])


def deleted(names: Any) -> Any:
    """A reply whose elements are made as they are written."""
    return DeleteGroupsResponse(
        results=Lazy(names, lambda name: DeletableGroupResult(group_id=name, error_code=0))
    )
