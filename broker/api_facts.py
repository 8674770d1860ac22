"""What is known of an API before any request: the declaration that opens each file of `broker.api`.

What the broker serves and advertises (`broker.registry`), the gate before the handlers and the
routes of connections follow from these.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from broker.request import Handler
from broker.security.access import Access
from broker.services import Services
from protocol.api_keys import ApiKey
from protocol.schema.parse_code import MAX_ELEMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API as this broker serves it."""

    key: ApiKey
    versions: tuple[int, int]
    """Lowest and highest."""
    make: Callable[[Services], Handler]
    """Makes the handler of a broker with these components."""
    most_elements: int = MAX_ELEMENTS
    """The most elements of a request: as many as the handler goes through in one go, or keeps
    (docs/limits.md). More raise ProtocolError."""
    in_workers: bool = False
    """Daily work of producers and consumers, whose coroutines share the workers. Those of other
    APIs are run aside, because they wait for each other (changes of topics are made one after the
    other) or go in turns: in a worker they would keep appends from running."""
    ends_with_client: bool = False
    """Long work ends when the client disconnects, because the API changes nothing; or it is
    Produce, whose appends are each done as a whole. All others are finished; Metadata and
    FindCoordinator may make topics."""
    carries_files: bool = False
    """Responses hold records, which may be slices of files."""
    accesses: tuple[Access, ...] = ()
    """What a principal must be allowed before the handler is called. The comment in an API's file
    names the method of Kafka 4 that makes the check. Checks that Kafka makes while it answers are
    missing, because the request does not name their resources: DESCRIBE_CONFIGS of topics that
    CreateTopics made, CREATE of topics that Metadata makes, DESCRIBE of the topics in a described
    transaction. Kafka leaves out of a listing what the principal may not see; here a listing needs
    the access to everything (`answered`), because only a handler could filter."""


class Served(NamedTuple):
    """An API and who answers it."""

    api: Api
    handler: Handler


def by_key(served: Iterable[Served]) -> dict[ApiKey, Served]:
    """The table that routes are made from."""
    return {one.api.key: one for one in served}
