"""Schemas from a schema registry, by their ids: Confluent's HTTP API, which others have as well.

A schema never changes under its id, so its caller asks once. Schemas that it refers to
(`references`) are fetched by subject and version, and come before it in the result.
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final

from tools.errors import CommandError

DEFAULT_URL: Final = "http://localhost:8081"
TIMEOUT_S: Final = 10.0
MAX_ANSWER: Final = 10_000_000
"""Bytes of the longest answer that is read: schemas have some thousand."""
MAX_SCHEMAS: Final = 200
"""Schemas that one may refer to, also over others."""
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class Registry:
    """A schema registry; its URL may hold a user and password (`https://user:password@host`)."""

    def __init__(self, url: str) -> None:
        """Raises CommandError if `url` is not an HTTP URL."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(f"--schema-registry {url} is not of the form http://HOST:PORT")
        self._headers: Final = {"Accept": _ACCEPT}
        if parts.username is not None:
            words = urllib.parse.unquote(f"{parts.username}:{parts.password or ''}")
            self._headers["Authorization"] = "Basic " + base64.b64encode(words.encode()).decode()
        host = parts.netloc.rpartition("@")[2]
        self._url: Final = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"

    def schemas(self, schema_id: int) -> list[Any]:
        """Return the schemas it refers to, deepest first, then the schema itself, as parsed JSON.

        Raises CommandError.
        """
        found: dict[tuple[str, int], Any] = {}
        answer = self._get(f"/schemas/ids/{schema_id}")
        last = self._resolved(answer, found, set(), schema_id)
        return [*found.values(), last]

    def _resolved(
        self,
        answer: Any,
        found: dict[tuple[str, int], Any],
        asked: set[tuple[str, int]],
        schema_id: int,
    ) -> Any:
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise CommandError(f"the schema with id {schema_id} is {kind}, not Avro")
        for reference in answer.get("references") or ():
            key = (reference["subject"], reference["version"])
            if key not in asked:  # a schema may refer to itself
                asked.add(key)
                if len(asked) > MAX_SCHEMAS:
                    raise CommandError(
                        f"the schema with id {schema_id} refers to more than {MAX_SCHEMAS} others"
                    )
                subject = urllib.parse.quote(key[0], safe="")
                deeper = self._get(f"/subjects/{subject}/versions/{key[1]}")
                schema = self._resolved(deeper, found, asked, schema_id)
                found[key] = schema
        try:
            return json.loads(answer["schema"])
        except (KeyError, TypeError, ValueError, RecursionError):
            raise CommandError(f"the registry's answer for id {schema_id} has no schema") from None

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(self._url + path, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                data = answer.read(MAX_ANSWER + 1)
            if len(data) > MAX_ANSWER:
                raise CommandError(f"the schema registry at {self._url} answers without end")
            value = json.loads(data)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise CommandError(f"the schema registry at {self._url} has no {path}") from None
            raise CommandError(
                f"the schema registry at {self._url} answers {error.code} {error.reason}"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "reason", None) or error
            said = getattr(reason, "strerror", None) or reason
            raise CommandError(
                f"no schema registry answers at {self._url} ({said}). Is it running, and is"
                " --schema-registry right?"
            ) from None
        if not isinstance(value, dict):
            raise CommandError(f"what answers at {self._url} is no schema registry")
        return value
