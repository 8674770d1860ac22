"""Frames and headers, with the traps of version negotiation (A1b)."""

import io
import struct

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from protocol.api_keys import ApiKey
from protocol.errors import ProtocolError
from protocol.framing import (
    MIN_REQUEST_SIZE,
    RequestHeader,
    UnsupportedVersion,
    build_request_header,
    frame_size,
    parse_request_header,
    parse_response_header,
    response_header_is_flexible,
)


def parse(data: bytes, before: bytes = b"") -> RequestHeader:
    buffer = bytearray(before + data)
    fields = parse_request_header(buffer, memoryview(buffer), len(before), len(buffer))
    return RequestHeader(*fields)


def kio_header(cls: type, key: int, version: int, client_id: str | None) -> bytes:
    stream = io.BytesIO()
    header = cls(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(77),
        client_id=client_id,
    )
    entity_writer(cls)(stream, header)
    return stream.getvalue()


@pytest.mark.parametrize("client_id", ["client", "", None, "größer"])
@pytest.mark.parametrize(("cls", "version"), [(KioHeaderV1, 11), (KioHeaderV2, 12)])
def test_headers_as_kio_writes_them(cls: type, version: int, client_id: str | None) -> None:
    data = kio_header(cls, ApiKey.FETCH, version, client_id)
    header = parse(data + b"body", before=b"??")
    assert header == (ApiKey.FETCH, version, 77, client_id, 2 + len(data))


@pytest.mark.parametrize("version", [11, 12])
def test_a_header_cut_off_anywhere_is_no_header(version: int) -> None:
    data = kio_header(KioHeaderV1 if version < 12 else KioHeaderV2, 1, version, "client")
    buffer = bytearray(data)
    for cut in range(len(data)):
        with pytest.raises(ProtocolError):
            parse(data[:cut])
        with pytest.raises(ProtocolError):
            parse_request_header(buffer, memoryview(buffer), 0, cut)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    start = kio_header(KioHeaderV2, ApiKey.METADATA, 9, "c")[:-1]
    assert parse(start + b"\x01\x00\x03abc" + b"body").body_offset == len(start) + 6
    for tail in (b"\x01", b"\x01\x00\x05abc", b"\x80", b"\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(ProtocolError):
            parse(start + tail)


def test_a_client_id_that_is_no_utf8() -> None:
    data = bytearray(kio_header(KioHeaderV1, 3, 1, "ab"))
    data[-1] = 0xFF
    with pytest.raises(ProtocolError, match="client id"):
        parse(bytes(data))


def test_trap_1_an_unknown_version_of_api_versions_carries_what_an_answer_takes() -> None:
    data = kio_header(KioHeaderV2, ApiKey.API_VERSIONS, 6, "new-client")
    with pytest.raises(UnsupportedVersion) as caught:
        parse(data + b"whatever")
    header = caught.value.header
    assert (header.api_key, header.api_version) == (ApiKey.API_VERSIONS, 6)
    assert (header.correlation_id, header.client_id) == (77, "new-client")


@pytest.mark.parametrize(("key", "version"), [(999, 0), (-1, 0), (ApiKey.FETCH, 99), (1, -1)])
def test_an_unknown_key_or_version(key: int, version: int) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        parse(kio_header(KioHeaderV1, key, version, "c"))
    assert caught.value.header.correlation_id == 77


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    assert parse(b"\0\7\0\0\0\0\0\x05") == (7, 0, 5, None, 8)
    assert parse(b"\0\7\0\0\0\0\0\x05" + b"\0\0\0\x01") == (7, 0, 5, None, 8)
    assert parse(b"\0\7\0\x01\0\0\0\x05" + b"\0\x01c") == (7, 1, 5, "c", 11)


def test_trap_1_the_response_to_api_versions_always_has_header_v0() -> None:
    assert not any(response_header_is_flexible(ApiKey.API_VERSIONS, v) for v in range(5))
    assert not response_header_is_flexible(ApiKey.PRODUCE, 8)
    assert response_header_is_flexible(ApiKey.PRODUCE, 9)
    assert not response_header_is_flexible(ApiKey.OFFSET_DELETE, 0)


def test_the_first_bytes_of_tls_are_told_as_such() -> None:
    with pytest.raises(ProtocolError, match="it begins as TLS does, which is not spoken here"):
        frame_size(b"\x16\x03\x01\x02", 0, 4, 104857600)


def test_frame_sizes() -> None:
    assert frame_size(b"\0\0\0", 0, 3, 100) is None
    assert frame_size(b"x\0\0\0\x08", 1, 4, 100) == MIN_REQUEST_SIZE
    assert frame_size(struct.pack(">i", 100), 0, 4, 100) == 100
    for size in (-1, -(1 << 31), 0, 7, 101, (1 << 31) - 1):
        with pytest.raises(ProtocolError):
            frame_size(struct.pack(">i", size), 0, 4, 100)


@pytest.mark.parametrize(("cls", "version"), [(KioHeaderV1, 11), (KioHeaderV2, 12)])
def test_a_client_writes_headers_as_kio_does(cls: type, version: int) -> None:
    written = build_request_header(ApiKey.FETCH, version, 77, "größer".encode())
    assert written == kio_header(cls, ApiKey.FETCH, version, "größer")


def test_a_client_writes_controlled_shutdown_v0_without_a_client_id() -> None:
    assert build_request_header(ApiKey.CONTROLLED_SHUTDOWN, 0, 5, b"c") == b"\0\7\0\0\0\0\0\x05"
    assert parse(build_request_header(ApiKey.CONTROLLED_SHUTDOWN, 3, 5, b"c")).client_id == "c"


@pytest.mark.parametrize(
    ("data", "flexible", "offset"),
    [
        (b"\0\0\0\x4dbody", False, 4),
        (b"\0\0\0\x4d\0body", True, 5),
        (b"\0\0\0\x4d\x01\x07\x03abcbody", True, 10),
    ],
)
def test_headers_of_responses(data: bytes, flexible: bool, offset: int) -> None:
    buffer = b"??" + data
    found = parse_response_header(buffer, 2, len(buffer), flexible=flexible)
    assert found == (77, 2 + offset)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x4d", b"\0\0\0\x4d\x01\x07\x09abc"])
def test_a_response_that_is_cut_off_in_its_header(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_response_header(data, 0, len(data), flexible=True)
