"""Requests that confluent-kafka's admin client has no function for: one, on a socket of its own.

So far that is OffsetDelete. Plain sockets: where `security.protocol` asks for TLS or SASL it cannot
be done, and the command says so.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.registry import request_codec, response_codec
from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.log_ends import Place

_CLIENT_ID = b"pykafkalog"


def offset_delete(
    address: tuple[str, int], settings: Mapping[str, Any], group: str, places: Sequence[Place]
) -> dict[Place, ErrorCode]:
    """What came of each partition; `address` is the group's coordinator. Raises CommandError."""
    protocol = str(settings.get("security.protocol", "plaintext"))
    if protocol.lower() != "plaintext":
        raise CommandError(f"offsets cannot be deleted over {protocol}: only over plaintext")
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=n) for _, n in places_of],
        )
        for name, places_of in groupby(sorted(places), key=lambda place: place[0])
    ]
    try:
        answer = _call(
            address, ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group, topics=topics)
        )
    except (OSError, EOFError) as error:
        raise CommandError(f"the coordinator at {address[0]}:{address[1]}: {error}") from None
    if answer.error_code:
        raise CommandError(_sentence(ErrorCode(answer.error_code)))
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def _sentence(code: ErrorCode) -> str:
    return f"the broker refused: {code.name.lower().replace('_', ' ')}"


def _call(address: tuple[str, int], key: ApiKey, version: int, request: Any) -> Any:
    """For versions that are not flexible. Raises OSError, EOFError."""
    body: bytes = request_codec(key, version).build(request)
    header = struct.pack(">hhih", key, version, 1, len(_CLIENT_ID)) + _CLIENT_ID
    with socket.create_connection(address, TIMEOUT_S) as connection, connection.makefile("rb") as f:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        size = int.from_bytes(_exactly(f, 4), "big")
        frame = _exactly(f, size)
    return response_codec(key, version).parse(frame[4:])


def _exactly(file: Any, size: int) -> bytes:
    data: bytes = file.read(size)
    if len(data) < size:
        raise EOFError("closed the connection")
    return data
