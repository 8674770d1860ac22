"""The facts in one broker's answers to each client, by request: tests/golden/access.json.

    {"clients": ["nothing", "only TOPIC/READ", …],
     "METADATA v13 plain": {"<facts>": "0 3 5", …}, …}

Clients with the same facts share an entry; a request that is sent in several parts has as many
lists of facts.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from protocol.api_keys import ApiKey

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "access.json"
_CLIENTS: Final = "clients"


class AccessRecord:
    """Facts by API, version, form and client."""

    def __init__(self) -> None:
        self._told: dict[str, dict[int, list[list[str]]]] = {}

    def note(self, key: ApiKey, version: int, form: str, client: int, told: list[str]) -> None:
        """Add the facts of one answer."""
        by_client = self._told.setdefault(f"{key.name} v{version} {form}", {})
        by_client.setdefault(client, []).append(told)

    def items(self) -> Iterator[tuple[str, int, list[list[str]]]]:
        """Yield (request, client, facts of each answer)."""
        for request, by_client in self._told.items():
            for client, told in by_client.items():
                yield request, client, told

    def write(self, clients: list[str]) -> None:
        """Replace the file."""
        content: dict[str, Any] = {_CLIENTS: clients}
        for request, by_client in sorted(self._told.items()):
            alike: dict[str, list[str]] = {}
            for client, told in sorted(by_client.items()):
                alike.setdefault(json.dumps(told), []).append(str(client))
            content[request] = {facts: " ".join(some) for facts, some in alike.items()}
        GOLDEN.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls) -> tuple["AccessRecord", list[str]]:
        """Return the record in the file, and the names of its clients."""
        content = json.loads(GOLDEN.read_text())
        record, clients = cls(), content.pop(_CLIENTS)
        for request, alike in content.items():
            record._told[request] = {
                int(client): json.loads(facts)
                for facts, some in alike.items()
                for client in some.split()
            }
        return record, clients
