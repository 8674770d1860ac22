"""The facts of an API that hold for every request: the declaration at the top of each file of
`broker.api`.

The APIs that the broker serves and advertises (`broker.registry`), the gate before the handlers and
the routes of connections follow from these declarations.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from broker.quotas.throttle import Charged
from broker.request import Handler, RequestContext
from broker.security.access import Access, Question
from broker.services import Services
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.schema.parse_code import MAX_ELEMENTS

MOST_OF_BROKERS: Final = 2_000_000
"""Elements of one request of a controller: 285,000 partitions of three replicas."""


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
    most_of_brokers: int = 0
    """The same for a client that may do what `accesses` name; 0: as others. One such request beyond
    what others may send is in work at a time."""
    in_workers: bool = False
    """Daily work of producers and consumers, whose calls in threads the workers make. Calls of
    other APIs have tasks of their own: in a worker they would keep appends from running."""
    ends_with_client: bool = False
    """Long work ends when the client's connection is reset, because the API changes nothing. All
    others are finished: Produce appends, and Metadata and FindCoordinator may make topics."""
    carries_files: bool = False
    """Responses hold records, which may be slices of files."""
    controller_only: bool = False
    """In a cluster only the controller does it; other brokers answer NOT_CONTROLLER."""
    shows_image: bool = False
    """A member of a cluster that has just started answers when it knows what there is."""
    charged: Charged = Charged.TIME
    """The charge for a request to the quotas of its client."""
    accesses: tuple[Access, ...] = ()
    """A request without these is refused whole, before the handler is called (`security.gate`). The
    comment in an API's file names the method of Kafka 4 that makes the checks."""
    asks: tuple[Question, ...] = ()
    """The operations that the handler itself checks, for each resource (`Services.allowed`)."""


class CodeAlone:
    """Base of handlers whose API refuses a request as a whole: by a code, and with nothing else."""

    response: ClassVar[type[Any]]

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The response with the code alone."""
        return self.response(error_code=code)


def _anybody(ctx: RequestContext) -> bool:
    return True


class Served(NamedTuple):
    """An API and the handler that answers it."""

    api: Api
    handler: Handler
    passes: Callable[[RequestContext], bool] = _anybody
    """Whether the client may do what the API's accesses name, of the cluster as a whole."""


def by_key(served: Iterable[Served]) -> dict[ApiKey, Served]:
    """The table that routes are made from."""
    return {one.api.key: one for one in served}
