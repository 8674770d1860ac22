"""Which handler answers which (API key, version): the route tables of connections.

A `Route` is everything a connection needs for one API and version: handler, codecs, counters. It is
made at the first request of that version and kept, so the hot path is one dictionary lookup.

Every connection has a `RouteTable`; most share that of `RequestServices`. A connection whose
client must still authenticate has another one, with three APIs: a request for an API that is not in
the table ends the connection. All tables share the counters of an API.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.api_facts import Served
from broker.network.request_metrics import RequestMetrics
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.framing import response_header_is_flexible
from protocol.messages import registry

_VERSION_BITS = 16
_API_VERSIONS = int(ApiKey.API_VERSIONS)
_AUTHENTICATE = int(ApiKey.SASL_AUTHENTICATE)

_HEAD_V0: Final = struct.Struct(">ii").pack
_HEAD_V1: Final = struct.Struct(">iiB").pack
_HEAD_RAW: Final = struct.Struct(">i").pack


def _plain_head(size: int, correlation_id: int) -> bytes:
    """Frame size and response header v0, for a body of `size` bytes."""
    return _HEAD_V0(size + 4, correlation_id)


def _flexible_head(size: int, correlation_id: int) -> bytes:
    """The same with header v1."""
    return _HEAD_V1(size + 5, correlation_id, 0)


def _raw_head(size: int, correlation_id: int) -> bytes:
    """The same without a header."""
    return _HEAD_RAW(size)


class Route:
    """How one version of one API is served."""

    __slots__ = (
        "build_into",
        "charged",
        "codec",
        "codec_of_reply",
        "ends_with_client",
        "error_response",
        "frame_head",
        "handler",
        "in_workers",
        "may_carry_files",
        "metrics",
        "most_elements",
        "most_of_brokers",
        "parse_at",
        "passes",
    )

    def __init__(self, served: Served, version: int, metrics: RequestMetrics) -> None:
        api, handler, self.passes = served
        key = api.key
        self.codec = registry.request_codec(key, version)
        self.codec_of_reply = registry.response_codec(key, version)
        self.parse_at = self.codec.parse_small_at
        self.build_into = self.codec_of_reply.build_into
        self.most_elements = api.most_elements
        self.most_of_brokers = api.most_of_brokers
        self.in_workers = api.in_workers
        self.ends_with_client = api.ends_with_client
        self.handler: Callable[[Any, Any], Any] = handler
        self.error_response = handler.error_response
        self.frame_head = (
            _flexible_head if response_header_is_flexible(key, version) else _plain_head
        )
        self.may_carry_files = api.carries_files
        self.charged = api.charged
        self.metrics = metrics

    def most_elements_of(self, context: RequestContext) -> int:
        """The most elements of a request of this client."""
        if self.most_of_brokers and self.passes(context):
            return self.most_of_brokers
        return self.most_elements


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

    def raw(self) -> Route:
        """Return a route for messages of SASL in frames without header, after SaslHandshake v0."""
        route = Route(self._served[ApiKey.SASL_AUTHENTICATE], 0, self._metrics_of(_AUTHENTICATE))
        route.frame_head = _raw_head
        route.build_into = _build_raw
        return route

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
        route = Route(served, version, self._metrics_of(key))
        self.made[(key << _VERSION_BITS) | version] = route
        return route

    def _metrics_of(self, key: int) -> RequestMetrics:
        metrics = self._metrics.get(key)
        if metrics is None:
            name = "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
            metrics = self._metrics[key] = RequestMetrics(name)
        return metrics


def _build_raw(reply: Any, append: Callable[[bytes], object]) -> None:
    """The `Route.build_into` of a SASL message: append the message alone, without its response."""
    append(bytes(reply.auth_bytes))
