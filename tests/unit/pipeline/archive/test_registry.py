"""A schema registry over HTTP."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pipeline.archive.registry import Registry
from pipeline.errors import PipelineError

ANSWERS = {
    "/schemas/ids/7": (200, {"schema": '"string"'}),
    "/schemas/ids/8": (200, {"schema": "message M {}", "schemaType": "PROTOBUF"}),
    "/schemas/ids/9": (500, {}),
    "/subjects/a%2Fb-value/versions/latest": (200, {"schema": '"long"', "id": 7, "version": 2}),
}


class _Handler(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        status, body = ANSWERS.get(self.path, (404, {"error_code": 40403}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    asked: list[tuple[str, str | None]] = []
    handler = type("Handler", (_Handler,), {"asked": asked})
    with HTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{httpd.server_port}", asked
        httpd.shutdown()
        thread.join()


def test_a_schema_is_asked_for_once(server: tuple[str, list[tuple[str, str | None]]]) -> None:
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


def test_user_and_password_of_the_url_go_into_the_header(
    server: tuple[str, list[tuple[str, str | None]]],
) -> None:
    address, asked = server
    Registry(f"http://me:p%40ss@{address}").schema(7)
    assert asked == [("/schemas/ids/7", "Basic bWU6cEBzcw==")]


def test_what_goes_wrong_is_said(server: tuple[str, list[tuple[str, str | None]]]) -> None:
    registry = Registry(f"http://{server[0]}")
    with pytest.raises(PipelineError, match="PROTOBUF, not Avro"):
        registry.schema(8)
    with pytest.raises(PipelineError, match="answers 500"):
        registry.schema(9)
    with pytest.raises(PipelineError, match="does not answer"):
        Registry("http://127.0.0.1:1").schema(7)
    with pytest.raises(PipelineError, match="no URL"):
        Registry("localhost:8081")
