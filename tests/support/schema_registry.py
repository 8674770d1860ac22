"""A fake of a schema registry, with enough of its HTTP API to return schemas.

with SchemaRegistry() as registry:
    schema_id = registry.add("orders-value", {"type": "record", …})
    registry.url
"""

import base64
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import fastavro


class SchemaRegistry:
    """Serves on a loopback port within the `with` block; `asked` has every requested path."""

    def __init__(self, *, user: str | None = None) -> None:
        """`user` is the `name:password` that every request must have."""
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.user = user
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(
        self, subject: str, schema: Any, references: tuple[str, ...] = (), kind: str = "AVRO"
    ) -> int:
        """Add version 1 of a subject; return its id. `references` are subjects."""
        schema_id = 1 + sum(path.startswith("/schemas") for path in self.answers)
        answer: dict[str, Any] = {"schema": json.dumps(schema)}
        if kind != "AVRO":
            answer["schemaType"] = kind
        if references:
            answer["references"] = [
                {"name": each, "subject": each, "version": 1} for each in references
            ]
        self.answers[f"/schemas/ids/{schema_id}"] = answer
        self.answers[f"/subjects/{subject}/versions/1"] = {**answer, "id": schema_id}
        return schema_id

    def __enter__(self) -> "SchemaRegistry":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def framed(schema_id: int, schema: Any, value: Any) -> bytes:
    """Frame a value as serializers do; `schema` includes everything that it refers to."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return struct.pack(">bI", 0, schema_id) + out.getvalue()


def _handler(registry: SchemaRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            code, answer = 200, registry.answers.get(self.path)
            if registry.user is not None and self.headers.get("Authorization") != (
                "Basic " + base64.b64encode(registry.user.encode()).decode()
            ):
                code, answer = 401, {"message": "who are you?"}
            elif answer is None:
                code, answer = 404, {"error_code": 40403, "message": "not found"}
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
