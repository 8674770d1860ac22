"""One connection: versions that both sides know, and failures told as sentences."""

import socket
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.describe_producers import DescribeProducersResponse
from protocol.messages.registry import response_codec
from protocol.sasl.conversations import LoginError
from tests.support.serving import serving
from tools.errors import CommandError, LoginRefused
from tools.link import MAX_ANSWER, Link

Answer = Callable[[int, int], bytes | None]
"""To an API key and a version: the response's body, None to hang up."""


def broker(answer: Answer) -> AbstractContextManager[tuple[str, int]]:
    """Answers one connection."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as file:
            while size := file.read(4):
                frame = file.read(int.from_bytes(size, "big"))
                key, version, correlation = struct.unpack_from(">hhi", frame)
                body = answer(key, version)
                if body is None:
                    return
                head = struct.pack(">i", correlation)
                connection.sendall(struct.pack(">i", len(head + body)) + head + body)

    return serving(serve)


def versions(served: dict[int, tuple[int, int]], version: int, error: int = 0) -> bytes:
    response = ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in served.items()
        ],
    )
    body: bytes = response_codec(ApiKey.API_VERSIONS, version).build(response)
    return body


def no_directories(version: int) -> bytes:
    codec = response_codec(ApiKey.DESCRIBE_LOG_DIRS, version)
    body: bytes = codec.build(DescribeLogDirsResponse(results=[]))
    return body


def test_an_older_broker_is_spoken_to_in_what_it_knows() -> None:
    served = {ApiKey.API_VERSIONS: (0, 2), ApiKey.DESCRIBE_LOG_DIRS: (0, 1)}
    asked: list[tuple[int, int]] = []

    def answer(key: int, version: int) -> bytes:
        asked.append((key, version))
        if key == ApiKey.API_VERSIONS:
            if version > 2:
                return versions(served, 0, ErrorCode.UNSUPPORTED_VERSION)
            return versions(served, version)
        return no_directories(version)

    with broker(answer) as address:
        link = Link(address)
        assert link.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results == []
        with pytest.raises(CommandError, match="does not serve DescribeLogDirs version 4"):
            link.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, least=4)
        with pytest.raises(CommandError, match=r"does not serve DescribeProducers$"):
            link.call(None, DescribeProducersResponse)
        link.close()
    assert asked == [(18, 5), (18, 2), (35, 1)]


def test_one_that_hangs_up_or_is_not_there_is_named() -> None:
    with (
        broker(lambda key, version: None) as address,
        pytest.raises(CommandError, match=f":{address[1]}: it closed the connection"),
    ):
        Link(address)
    with pytest.raises(CommandError, match=r"127\.0\.0\.1:1: Connection refused"):
        Link(("127.0.0.1", 1))


def saying(frame: bytes) -> AbstractContextManager[tuple[str, int]]:
    """Answers the first request of one connection with these bytes, whatever it asks."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(frame)
            connection.recv(1)  # until the other side hangs up

    return serving(serve)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x80000000, 0, 3, MAX_ANSWER + 1, 0x7FFFFFFF])
def test_the_size_of_an_answer_is_judged_before_it_is_read(size: int) -> None:
    with (
        saying(struct.pack(">I", size) + bytes(64)) as address,
        pytest.raises(CommandError, match=r"an answer of -?\d+ bytes"),
    ):
        Link(address, timeout_s=2)


@pytest.mark.parametrize("size", [4, MAX_ANSWER])
def test_sizes_that_an_answer_may_have(size: int) -> None:
    with (
        saying(struct.pack(">ii", size, 7) + bytes(64)) as address,
        # An answer of such a size is read: here it is that to another request, or not whole.
        pytest.raises(CommandError, match=r"another request|no answer within"),
    ):
        Link(address, timeout_s=0.2)


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f"])
def test_a_list_is_no_longer_than_its_answer(count: bytes) -> None:
    body = struct.pack(">i", 1) + struct.pack(">h", 0) + count + bytes(32)
    with (
        saying(struct.pack(">i", len(body)) + body) as address,
        pytest.raises(CommandError, match="an answer that is none"),
    ):
        Link(address, timeout_s=2)


class CountedLogin:
    """Logs in by asking for the versions again, for a session of that length."""

    def __init__(self, again_s: float | None) -> None:
        self.again_s = again_s
        self.times = 0

    def perform(self, ask: object) -> float | None:
        self.times += 1
        return self.again_s


@pytest.mark.parametrize(("again_s", "times"), [(None, 1), (3600.0, 1), (0.0, 3)])
def test_a_session_that_ends_is_renewed_before_a_request(again_s: float | None, times: int) -> None:
    def answer(key: int, version: int) -> bytes:
        if key == ApiKey.API_VERSIONS:
            return versions({ApiKey.DESCRIBE_LOG_DIRS: (1, 1)}, version)
        return no_directories(version)

    login = CountedLogin(again_s)
    with broker(answer) as address:
        link = Link(address, login=login)  # type: ignore[arg-type]
        for _ in range(2):
            link.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        link.close()
    assert login.times == times


def test_a_login_that_is_refused_ends_the_link_and_names_the_broker() -> None:
    class Refused:
        def perform(self, ask: object) -> None:
            raise LoginError("no")

    with (
        broker(lambda key, version: versions({}, version)) as address,
        pytest.raises(LoginRefused, match=f"the broker at 127.0.0.1:{address[1]}: no"),
    ):
        Link(address, login=Refused())  # type: ignore[arg-type]
