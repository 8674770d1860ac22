"""Which handler answers which (API key, version): the route tables of connections.

A `Route` is everything a connection needs for one API and version: handler, codecs, counters. It is
made at the first request of that version and kept, so the hot path is one dictionary lookup.

Every connection has a `RouteTable`; most share that of the request channel. A connection whose
client must still authenticate would have another one, with fewer APIs: a request for an API that is
not in the table ends the connection. All tables share the counters of an API.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.network.request_metrics import RequestMetrics
from broker.request import Handler
from protocol.api_keys import ApiKey
from protocol.framing import response_header_is_flexible
from protocol.messages import registry
from protocol.schema.parse_code import MAX_ELEMENTS
from storage.waits import Work

_VERSION_BITS = 16
_API_VERSIONS = int(ApiKey.API_VERSIONS)
_MAY_CARRY_FILES = frozenset((int(ApiKey.FETCH),))
"""APIs whose responses hold records, which may be slices of files."""

_IN_WORKERS = frozenset(
    int(key)
    for key in (
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
    )
)
"""APIs of the daily work of producers and consumers, whose coroutines share the workers. Those of
other APIs are run aside, because they wait for each other (changes of topics are made one after the
other) or go in turns: in a worker they would keep appends from running."""

_END_WITH_CLIENT: Final = frozenset(
    int(key)
    for key in (
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
    )
)
"""APIs that change nothing, and Produce, whose appends are each done as a whole: long work for them
ends when the client disconnects. All others are finished; Metadata and FindCoordinator may make
topics."""

MOST_ELEMENTS: Final[Mapping[int, int]] = {
    ApiKey.PRODUCE: 10_000,
    ApiKey.FETCH: 10_000,
    ApiKey.LIST_OFFSETS: 10_000,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 10_000,
    ApiKey.JOIN_GROUP: 1_000,
    ApiKey.SYNC_GROUP: 20_000,
    ApiKey.LEAVE_GROUP: 5_000,
    ApiKey.OFFSET_DELETE: 20_000,
    ApiKey.ADD_PARTITIONS_TO_TXN: 20_000,
    ApiKey.WRITE_TXN_MARKERS: 20_000,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 50_000,
    ApiKey.DESCRIBE_LOG_DIRS: 50_000,
    ApiKey.ALTER_CONFIGS: 50_000,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 50_000,
    ApiKey.CREATE_TOPICS: 50_000,
    ApiKey.CREATE_PARTITIONS: 50_000,
    ApiKey.DELETE_TOPICS: 50_000,
    ApiKey.LIST_GROUPS: 1_000,
    ApiKey.LIST_TRANSACTIONS: 20_000,
    ApiKey.UPDATE_FEATURES: 1_000,
}
"""The most elements of a request by API, if not `MAX_ELEMENTS`: as many as its handler goes through
in one go, or keeps (docs/limits.md). More raise ProtocolError."""


class Route:
    """How one version of one API is served."""

    __slots__ = (
        "build_into",
        "codec",
        "codec_of_reply",
        "ends_with_client",
        "error_response",
        "flexible_header",
        "handler",
        "in_workers",
        "may_carry_files",
        "metrics",
        "most_elements",
        "parse_at",
    )

    def __init__(self, key: int, version: int, handler: Handler, metrics: RequestMetrics) -> None:
        self.codec = registry.request_codec(key, version)
        self.codec_of_reply = registry.response_codec(key, version)
        self.parse_at = self.codec.parse_small_at
        self.build_into = self.codec_of_reply.build_into
        self.most_elements = MOST_ELEMENTS.get(key, MAX_ELEMENTS)
        self.in_workers = key in _IN_WORKERS
        self.ends_with_client = key in _END_WITH_CLIENT
        self.handler: Callable[[Any, Any], Work[Any]] = handler
        self.error_response = handler.error_response
        self.flexible_header = response_header_is_flexible(key, version)
        self.may_carry_files = key in _MAY_CARRY_FILES
        self.metrics = metrics


class RouteTable:
    """The routes of a connection, by API key and version."""

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler],
        versions: Mapping[ApiKey, tuple[int, int]],
        metrics: dict[int, RequestMetrics],
        *,
        unsupported_version_reply: Callable[[], Any] | None = None,
    ) -> None:
        """`versions`: lowest and highest served version, by API. `metrics`: by API, filled on use.

        `unsupported_version_reply` makes the v0 ApiVersions body for an unknown version.
        """
        self._handlers = handlers
        self._versions = versions
        self._metrics = metrics
        self._unsupported_version_reply = unsupported_version_reply
        self.made: Final[dict[int, Route]] = {}
        """Routes made so far, by `key << 16 | version`: for the hot path only."""

    def route(self, key: int, version: int) -> Route | None:
        """Return the route of an API and version; None if it is not served."""
        found = self.made.get((key << _VERSION_BITS) | version)
        return found if found is not None else self._make_route(key, version)

    def unsupported_version(self, key: int) -> tuple[Route, Any] | None:
        """Return route and reply for an unknown version; only ApiVersions has one (KIP-511)."""
        if key != _API_VERSIONS or self._unsupported_version_reply is None:
            return None
        route = self.route(_API_VERSIONS, 0)
        return None if route is None else (route, self._unsupported_version_reply())

    def _make_route(self, key: int, version: int) -> Route | None:
        served = self._versions.get(key)  # type: ignore[call-overload]  # ApiKey is an int
        handler = self._handlers.get(key)  # type: ignore[call-overload]
        if served is None or handler is None or not served[0] <= version <= served[1]:
            return None
        metrics = self._metrics.get(key)
        if metrics is None:
            name = "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
            metrics = self._metrics[key] = RequestMetrics(name)
        route = Route(key, version, handler, metrics)
        self.made[(key << _VERSION_BITS) | version] = route
        return route
