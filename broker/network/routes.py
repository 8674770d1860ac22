"""Which handler answers which (API key, version): the route tables of connections.

A `Route` is everything a connection needs for one API and version: handler, codecs, counters. It is
made at the first request of that version and kept, so the hot path is one dictionary lookup.

Every connection has a `RouteTable`; most share that of the request channel. A connection whose
client must still authenticate would have another one, with fewer APIs: a request for an API that is
not in the table ends the connection. All tables share the counters of an API.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.api_facts import Served
from broker.network.request_metrics import RequestMetrics
from protocol.api_keys import ApiKey
from protocol.framing import response_header_is_flexible
from protocol.messages import registry
from storage.waits import Work

_VERSION_BITS = 16
_API_VERSIONS = int(ApiKey.API_VERSIONS)


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

    def __init__(self, served: Served, version: int, metrics: RequestMetrics) -> None:
        api, handler = served
        key = api.key
        self.codec = registry.request_codec(key, version)
        self.codec_of_reply = registry.response_codec(key, version)
        self.parse_at = self.codec.parse_small_at
        self.build_into = self.codec_of_reply.build_into
        self.most_elements = api.most_elements
        self.in_workers = api.in_workers
        self.ends_with_client = api.ends_with_client
        self.handler: Callable[[Any, Any], Work[Any]] = handler
        self.error_response = handler.error_response
        self.flexible_header = response_header_is_flexible(key, version)
        self.may_carry_files = api.carries_files
        self.metrics = metrics


class RouteTable:
    """The routes of a connection, by API key and version."""

    def __init__(
        self,
        served: Mapping[ApiKey, Served],
        metrics: dict[int, RequestMetrics],
        *,
        unsupported_version_reply: Callable[[], Any] | None = None,
    ) -> None:
        """`metrics`: by API, filled on use.

        `unsupported_version_reply` makes the v0 ApiVersions body for an unknown version.
        """
        self._served = served
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
        served = self._served.get(key)  # type: ignore[call-overload]  # ApiKey is an int
        if served is None:
            return None
        lowest, highest = served.api.versions
        if not lowest <= version <= highest:
            return None
        metrics = self._metrics.get(key)
        if metrics is None:
            name = "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
            metrics = self._metrics[key] = RequestMetrics(name)
        route = Route(served, version, metrics)
        self.made[(key << _VERSION_BITS) | version] = route
        return route
