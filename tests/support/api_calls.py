"""Calls a handler as a client does: request and response pass the codecs of their version."""

from typing import Any

from broker.quotas.quotas import Quotas
from broker.request import ConnectionInfo, RequestContext, reply_of
from protocol.api_keys import ApiKey
from protocol.errors import KafkaError
from protocol.messages.registry import request_codec, response_codec
from storage.waits import at_once
from tests.support.manual_clock import ManualClock

CONNECTION = ConnectionInfo(
    connection_id="127.0.0.1:9092-127.0.0.1:5000-0",
    listener_name="PLAINTEXT",
    local_host="127.0.0.1",
    local_port=9092,
    peer_host="127.0.0.1",
    peer_port=5000,
)

NO_QUOTAS = Quotas(ManualClock())
"""The quotas of a broker that limits nobody."""


def context(
    key: ApiKey, version: int, *, connection: ConnectionInfo = CONNECTION, client_id: str = "test"
) -> RequestContext:
    """Make the context of one request."""
    return RequestContext(
        api_key=key,
        api_version=version,
        correlation_id=1,
        client_id=client_id,
        connection=connection,
        received=0.0,
    )


def over_the_wire(key: ApiKey, version: int, response: Any) -> Any:
    """Return a response as the client decodes it."""
    codec = response_codec(key, version)
    return codec.parse(codec.build(response))


async def answer_of(handler: Any, ctx: RequestContext, request: Any) -> Any:
    """The reply, as connections make it: a refusal becomes the error response."""
    try:
        return await reply_of(handler(ctx, request))
    except KafkaError as error:
        return handler.error_response(ctx, request, error.code)


async def acall(
    handler: Any,
    key: ApiKey,
    version: int,
    request: Any,
    *,
    connection: ConnectionInfo = CONNECTION,
) -> Any:
    """Return the response that a client decodes after sending `request` in `version`."""
    codec = request_codec(key, version)
    parsed = codec.parse(codec.build(request))
    reply = await answer_of(handler, context(key, version, connection=connection), parsed)
    return over_the_wire(key, version, reply)


def call(handler: Any, key: ApiKey, version: int, request: Any, **options: Any) -> Any:
    """As `acall`, from a test that runs nothing else."""
    return at_once(acall(handler, key, version, request, **options))
