"""A schema registry over HTTP."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from pipeline.archive.registry import Registry
from pipeline.errors import PipelineError
from tests.support.serving import serving_http

ANSWERS = {
    "/schemas/ids/7": (200, {"schema": '"string"'}),
    "/schemas/ids/8": (200, {"schema": "message M {}", "schemaType": "PROTOBUF"}),
    "/schemas/ids/9": (500, {}),
    "/subjects/a%2Fb-value/versions/latest": (200, {"schema": '"long"', "id": 7, "version": 2}),
}

Server = tuple[str, list[tuple[str, str | None]]]
"""Its address, and the path and the Authorization of each request."""


@pytest.fixture
def server() -> Iterator[Server]:
    asked: list[tuple[str, str | None]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append((request.path, request.headers.get("Authorization")))
        status, body = ANSWERS.get(request.path, (404, {"error_code": 40403}))
        request.send_response(status)
        request.end_headers()
        request.wfile.write(json.dumps(body).encode())

    with serving_http(answer) as url:
        yield url.removeprefix("http://"), asked


def test_a_schema_is_asked_for_once(server: Server) -> None:
    address, asked = server
    registry = Registry(f"http://{address}/")
    assert registry.schema(7) == registry.schema(7) == '"string"'
    assert registry.schema(1) is None
    assert registry.latest("a/b-value") == '"long"'
    assert [path for path, _ in asked] == [
        "/schemas/ids/7",
        "/schemas/ids/1",
        "/subjects/a%2Fb-value/versions/latest",
    ]


def test_user_and_password_of_the_url_go_into_the_header(server: Server) -> None:
    address, asked = server
    Registry(f"http://me:p%40ss@{address}").schema(7)
    assert asked == [("/schemas/ids/7", "Basic bWU6cEBzcw==")]


def test_what_goes_wrong_is_said(server: Server) -> None:
    registry = Registry(f"http://{server[0]}")
    with pytest.raises(PipelineError, match="PROTOBUF, not Avro"):
        registry.schema(8)
    with pytest.raises(PipelineError, match="answers 500"):
        registry.schema(9)
    with pytest.raises(PipelineError, match="does not answer"):
        Registry("http://127.0.0.1:1").schema(7)
    with pytest.raises(PipelineError, match="no URL"):
        Registry("localhost:8081")
