"""Frames as the proxy sees them: their API, and the error codes of an answer."""

import struct
from dataclasses import dataclass
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.framing import response_header_is_flexible
from protocol.messages.registry import response_codec

SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhi")

FIRST_OF_VERSION_2: Final = {
    ApiKey.PRODUCE: 12,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.END_TXN: 5,
}
"""The first version of a request that belongs to a transaction of version 2 (KIP-890)."""


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """One request; `data` without the size."""

    data: bytes
    key: ApiKey
    version: int

    @property
    def framed(self) -> bytes:
        """The request with its size."""
        return SIZE.pack(len(self.data)) + self.data

    @property
    def is_version_2(self) -> bool:
        """Whether its transaction is of version 2: an epoch of its own protects it."""
        first = FIRST_OF_VERSION_2.get(self.key)
        return first is not None and self.version >= first

    def __str__(self) -> str:
        return f"{self.key.name} v{self.version}"


def request_frame(data: bytes) -> RequestFrame:
    """Parse a request. Raises struct.error or ValueError for other bytes."""
    key, version, _ = _HEADER.unpack_from(data)
    return RequestFrame(data, ApiKey(key), version)


def answer_codes(request: RequestFrame, answer: bytes) -> set[str]:
    """All error codes in the answer to `request`; NONE among them where something went well."""
    start = 5 if response_header_is_flexible(request.key, request.version) else 4
    response = response_codec(request.key, request.version).parse(answer[start:])
    return {ErrorCode(code).name for code in _codes(response)}


def _codes(value: Any) -> set[int]:
    if isinstance(value, list):
        return {code for one in value for code in _codes(one)}
    slots = getattr(type(value), "__slots__", ())
    names = {*slots, *getattr(value, "__dict__", {})}
    found = {int(value.error_code)} if "error_code" in names else set()
    for name in names - {"error_code"}:
        inside = getattr(value, name, None)
        if isinstance(inside, list) or hasattr(type(inside), "__slots__"):
            found |= _codes(inside)
    return found
