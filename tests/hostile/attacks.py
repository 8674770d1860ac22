"""Requests that are small to send and large to serve. Each returns when the broker has answered.

They assert the answer where Kafka's is known; otherwise any answer will do, and the end of the
connection as well.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.produce_requests import one_batch
from tests.support.read_requests import one_fetch, one_lookup
from tests.support.topic_requests import creation, growth
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

PATIENCE_S = 120


def ask(port: int, key: ApiKey, version: int, request: Any) -> Any:
    """Return the answer, or None if the broker closed the connection instead."""
    with WireClient(port, timeout_s=PATIENCE_S) as client:
        try:
            return client.call(key, version, request)
        except ConnectionError:
            return None


def create_topic(
    port: int,
    name: str,
    partitions: int = 1,
    *,
    missing_only: bool = False,
    validate_only: bool = False,
) -> ErrorCode:
    """Create a topic; return the error code of the answer."""
    request = creation(name, partitions=partitions, validate_only=validate_only)
    code = ErrorCode(ask(port, ApiKey.CREATE_TOPICS, 4, request).topics[0].error_code)
    if missing_only:
        assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), code.name
    return code


def more_partitions(port: int, name: str, count: int) -> ErrorCode:
    """Send CreatePartitions; return the error code of the answer."""
    answer = ask(port, ApiKey.CREATE_PARTITIONS, 1, growth(name, count))
    return ErrorCode(answer.results[0].error_code)


def produce(port: int, topic: str, batch: bytes, *, version: int = 9) -> ErrorCode | None:
    """Produce a batch to partition 0; return the error code, None if the connection was closed."""
    answer = ask(port, ApiKey.PRODUCE, version, one_batch(topic, batch))
    if answer is None:
        return None
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def fetch(port: int, topic: str, *, version: int, offset: int = 0, size: int = 1 << 30) -> bytes:
    """Return the records of one fetch from partition 0."""
    answer = ask(port, ApiKey.FETCH, version, one_fetch(topic, offset, size=size))
    (part,) = answer.responses[0].partitions
    assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
    return bytes(part.records or b"")


def offset_at(port: int, topic: str, timestamp: int) -> int:
    """Return the offset for a time in partition 0."""
    answer = ask(port, ApiKey.LIST_OFFSETS, 5, one_lookup(topic, timestamp))
    (part,) = answer.topics[0].partitions
    assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
    return int(part.offset)


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Hold so many silent connections; those that the broker refuses count as well."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            one = socket.create_connection(("127.0.0.1", port), 10)
            held.append(one)
        yield held
    finally:
        for one in held:
            one.close()


def admitted(held: Sequence[socket.socket], *, most: int) -> list[socket.socket]:
    """Return the connections that the broker keeps, once it has refused all but `most` of them.

    A connection waits in the backlog until the broker looks at it. As long as one does, a place
    that becomes free may be taken by it.
    """
    undecided = dict.fromkeys(held)
    for one in held:
        one.setblocking(False)

    def others_refused() -> bool:
        for one in list(undecided):
            try:
                one.recv(1)
            except BlockingIOError:
                continue
            except ConnectionError:
                pass
            del undecided[one]
        return len(undecided) <= most

    wait_until(others_refused, PATIENCE_S)
    return list(undecided)


@contextmanager
def half_frames(port: int, count: int, announced: int, sent: int) -> Iterator[None]:
    """Hold so many connections, each of which announces a frame and sends a part of it."""
    with idle_connections(port, count) as held:
        piece = bytes(1 << 16)
        for one in held:
            one.setblocking(False)
        left = dict.fromkeys(held, sent)
        head = struct.pack(">ihhi", announced, ApiKey.PRODUCE, 9, 1)
        for one in held:
            one.send(head)
        for _ in range(sent // len(piece) * 4):
            for one in list(left):
                try:
                    left[one] -= one.send(piece[: left[one]])
                except BlockingIOError:
                    continue  # the broker does not read on: that is one of its ways out
                except ConnectionError:
                    del left[one]
                    continue
                if left[one] <= 0:
                    del left[one]
            if not left:
                break
        yield
