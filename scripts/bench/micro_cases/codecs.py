"""Generated code for a message."""

from typing import Any

from measuring import Run

from micro_cases.messages import (
    FETCH,
    METADATA,
    PRODUCE,
    Case,
    each,
    fetch_request,
    fetch_response,
    metadata_response,
    produce_request,
    produce_response,
)
from protocol.api_keys import ApiKey
from protocol.framing import parse_request_header
from protocol.messages import fetch, metadata, produce
from protocol.schema import Api
from tests.support.wire_client import request_frame

CASES: dict[str, Case] = {}


def parsing(key: ApiKey, version: int, request: Any) -> Run:
    frame = bytearray(request_frame(key, version, request)[4:])
    view, end, parse_at = memoryview(frame), len(frame), type(request).codec(version).parse_at

    def parse() -> Any:
        *_, body = parse_request_header(frame, view, 0, end)
        return parse_at(frame, view, body, end)

    return each(parse)


def building(api: Api, version: int, value: Any) -> Run:
    build_into = api.codec(version).build_into
    return each(lambda: build_into(value, [].append))


for _count, _size in ((1, 16_384), (10, 1_024)):
    _shape = f"{_count}x{_count}"
    CASES |= {
        f"codec/parse Produce {_shape}": lambda _, n=_count, size=_size: parsing(
            ApiKey.PRODUCE, PRODUCE, produce_request(n, n, bytes(size))
        ),
        f"codec/build Produce response {_shape}": lambda _, n=_count: building(
            produce.ProduceResponse, PRODUCE, produce_response(n, n)
        ),
        f"codec/parse Fetch {_shape}": lambda _, n=_count: parsing(
            ApiKey.FETCH, FETCH, fetch_request(n, dict.fromkeys(range(n), 7))
        ),
        f"codec/build Fetch response {_shape}": lambda _, n=_count, size=_size: building(
            fetch.FetchResponse, FETCH, fetch_response(n, [bytes(size)] * n)
        ),
        f"codec/build Metadata response {_shape}": lambda _, n=_count: building(
            metadata.MetadataResponse, METADATA, metadata_response(n, n)
        ),
    }
