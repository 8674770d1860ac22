"""Frames and headers: what precedes a message on a connection.

A frame is an int32 size and that many bytes: a request header and a request, or a response header
and a response. A request that is too large is refused by the size of its frame (`frame_size`).
Headers are few, fixed and on every request's path, so they are read with plain struct code instead
of a declaration.

Request header v1: api key, api version, correlation id, client id (nullable, and not compact even
in flexible versions, because the broker reads it before it checks the version). v2, for flexible
versions, appends tagged fields. v0, without a client id, is used by ControlledShutdown v0 only.
Response header v0: the correlation id. v1, for flexible versions, appends tagged fields. The
response to ApiVersions always has v0: a client reads it before it knows the broker's versions.
"""

import struct
from typing import Any, NamedTuple, TypeAlias

from protocol.api_keys import ApiKey
from protocol.errors import FrameSizeError, ProtocolError
from protocol.messages.registry import SPECS
from protocol.schema.wire import read_uvarint, skip_tagged_fields

SIZE_BYTES = 4
"""The size field before each frame, not counted in the size."""
MIN_REQUEST_SIZE = 8
"""Bytes of the shortest request: key, version and correlation id."""

_CORRELATION_BYTES = 4
_V1_SIZE = 10
"""Bytes of the shortest header v1, with an empty or null client id."""
_CONTROLLED_SHUTDOWN = int(ApiKey.CONTROLLED_SHUTDOWN)
_FLEXIBLE = {
    key << 16 | version: spec.flexible(version)
    for key, spec in SPECS.items()
    for version in range(spec.min_version, spec.max_version + 1)
    if (key, version) != (_CONTROLLED_SHUTDOWN, 0)
}
"""Whether tagged fields follow in the request header, for every declared API key and version, which
are one number here. ControlledShutdown v0 has header v0, so it is not among them."""

_read_size = struct.Struct(">i").unpack_from
_read_v0 = struct.Struct(">hhi").unpack_from
_read_v1 = struct.Struct(">hhih").unpack_from
_write_v0 = struct.Struct(">hhi").pack
_write_v1 = struct.Struct(">hhih").pack

_TLS = 0x1603
"""The first two bytes of TLS."""


HeaderFields: TypeAlias = tuple[int, int, int, str | None, int]
"""The fields of a `RequestHeader`. Every request has them read, and few need them as one value."""


class RequestHeader(NamedTuple):
    """The envelope of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    """The position in the buffer at which the request itself begins."""


class UnsupportedVersion(ProtocolError):
    """A well-formed header with an API key or version that is not served.

    The connection closes, except for ApiVersions, which is answered in v0 with UNSUPPORTED_VERSION
    (KIP-511), for which `header` is kept. Its body_offset means nothing: an unknown version may
    have any layout.
    """

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API key {header.api_key} version {header.api_version} is not served")
        self.header = header


def frame_size(
    buf: Any, offset: int, available: int, max_size: int, min_size: int = MIN_REQUEST_SIZE
) -> int | None:
    """The size of the frame that begins at `offset`, its size field not counted.

    None if fewer than four bytes are `available` from there on. Raises FrameSizeError for a size
    that is negative, below `min_size` or above `max_size` (`socket.request.max.bytes`): as in
    Kafka, the connection then closes before memory is allocated for the request.
    """
    if available < SIZE_BYTES:
        return None
    size: int = _read_size(buf, offset)[0]
    if size < min_size:
        raise FrameSizeError(f"a request of {size} bytes is too short")
    if size > max_size:
        hint = "; it begins as TLS does, which is not spoken here" if size >> 16 == _TLS else ""
        raise FrameSizeError(
            f"a request of {size} bytes is larger than the limit of {max_size}{hint}"
        )
    return size


def parse_request_header(buf: Any, mv: memoryview, start: int, end: int) -> HeaderFields:
    """The header of the request in bytes [start, end) of `buf`; `mv` is a view of `buf`.

    Raises UnsupportedVersion for a key or version that is not declared, ProtocolError for bytes
    that are not a header.
    """
    offset = start + _V1_SIZE
    if offset > end:
        return _parse_header_v0(buf, start, end)
    key, version, correlation_id, length = _read_v1(buf, start)
    flexible = _FLEXIBLE.get(key << 16 | version)
    if flexible is None and key == _CONTROLLED_SHUTDOWN and version == 0:
        return _parse_header_v0(buf, start, end)
    client_id = None
    if length >= 0:
        stop = offset + length
        if stop > end:
            raise ProtocolError("request header: client id longer than the frame")
        try:
            client_id = buf[offset:stop].decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"request header: client id: {error}") from error
        offset = stop
    if flexible is None:
        raise UnsupportedVersion(RequestHeader(key, version, correlation_id, client_id, offset))
    if flexible:
        if offset < end and not buf[offset]:
            offset += 1
        else:
            offset = _skip_tail(buf, offset, end)
    return key, version, correlation_id, client_id, offset


def response_header_is_flexible(api_key: int, api_version: int) -> bool:
    """Whether the response to this request has header v1. Raises KeyError for an unknown key."""
    return api_key != ApiKey.API_VERSIONS and SPECS[api_key].flexible(api_version)


def build_request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: bytes
) -> bytes:
    """The header of a request, without its size. Raises KeyError for an unknown key."""
    if api_key == _CONTROLLED_SHUTDOWN and api_version == 0:
        return _write_v0(api_key, api_version, correlation_id)
    head = _write_v1(api_key, api_version, correlation_id, len(client_id)) + client_id
    return head + b"\0" if SPECS[api_key].flexible(api_version) else head


def parse_response_header(buf: Any, start: int, end: int, *, flexible: bool) -> tuple[int, int]:
    """(correlation id, offset of the body) of the response in bytes [start, end) of `buf`.

    `flexible` as `response_header_is_flexible` says. Raises ProtocolError.
    """
    offset = start + _CORRELATION_BYTES
    if offset > end:
        raise ProtocolError("response header: the frame ends too early")
    correlation_id: int = _read_size(buf, start)[0]
    if flexible:
        offset = _skip_tail(buf, offset, end)
    return correlation_id, offset


def _parse_header_v0(buf: Any, start: int, end: int) -> HeaderFields:
    """The header of ControlledShutdown v0, the only request that may be this short."""
    if end - start < MIN_REQUEST_SIZE:
        raise ProtocolError("request header: the frame ends too early")
    key, version, correlation_id = _read_v0(buf, start)
    if key != _CONTROLLED_SHUTDOWN or version != 0:
        raise ProtocolError("request header: the frame ends too early")
    return key, version, correlation_id, None, start + MIN_REQUEST_SIZE


def _skip_tail(buf: Any, offset: int, end: int) -> int:
    """The offset behind the header's tagged fields, all unknown. Raises ProtocolError."""
    if offset >= end:
        raise ProtocolError("header: the frame ends too early")
    count = buf[offset]
    offset += 1
    if count:
        try:
            if count > 127:
                count, offset = read_uvarint(buf, offset, count)
            offset = skip_tagged_fields(buf, offset, count, end)
        except IndexError as error:
            raise ProtocolError("header: the frame ends too early") from error
    return offset
