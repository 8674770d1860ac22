"""A schema registry: schemas by id. Its clients' serializers frame values with the id:

| byte 0 | bytes 1-4: schema id, big endian | Avro |
"""

import json
import urllib.error
import urllib.request
from base64 import b64encode
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from pipeline.errors import PipelineError

FRAME_BYTES: Final = 5
TIMEOUT_S: Final = 15.0
_NOT_FOUND: Final = 404


class Registry:
    """One registry; its URL may hold user and password. The schema of an id never changes."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PipelineError(f"{url} is no URL of a schema registry (http://host:port)")
        host = parts.netloc.rpartition("@")[2]
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(secret.encode()).decode()}"
        self._schemas: dict[int, str | None] = {}

    def schema(self, schema_id: int) -> str | None:
        """Return the Avro schema of an id, as JSON; None if it is unknown. Raises PipelineError."""
        if schema_id not in self._schemas:
            found = self._get(f"/schemas/ids/{schema_id}")
            self._schemas[schema_id] = None if found is None else _avro(found)
        return self._schemas[schema_id]

    def latest(self, subject: str) -> str | None:
        """Return the newest schema of a subject; None if the subject is unknown."""
        found = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if found is None else _avro(found)

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(self._url + path, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return None
            raise PipelineError(
                f"the schema registry answers {error.code} to {self._url}{path}"
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise PipelineError(
                f"the schema registry at {self._url} does not answer: {reason}"
            ) from None


def _avro(found: Any) -> str:
    kind = found.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise PipelineError(f"a schema of the registry is {kind}, not Avro")
    return str(found["schema"])
