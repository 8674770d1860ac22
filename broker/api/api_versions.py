"""ApiVersions (key 18): which APIs are served, in which versions.

Versions: 0-4.

Behaviour
* The first thing a client asks; nothing but the table of handlers is needed to answer.
* Produce is advertised from 0 although older versions may be refused: librdkafka drops gzip,
  snappy and lz4 when the minimum is 3 (KAFKA-18659). No range is ever empty: aiokafka asserts that.
* The feature `transaction.version` is finalized at 2: clients that know it use the second
  transaction protocol (KIP-890), others the first, side by side.
* A version that is not served here is answered with `unsupported_version_response` in v0 form; the
  connection does that, because the request cannot be parsed (KIP-511).

Version notes
* v0 has no throttle time; aiokafka sends v0 only.
* v3+: the client names its software; a name or version that is not made of letters, digits, dots
  and dashes is an INVALID_REQUEST.
* v3+: features. v4: supported ones that begin at level 0, too; v3 leaves those out.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

VERSIONS: Final = (0, 4)

FINALIZED_TRANSACTION_VERSION: Final = 2
FEATURES_EPOCH: Final = 0
"""The features never change while a broker lives; clients ignore those without an epoch."""

FALLBACK_VERSION: Final = 0
"""The version in which a request of an unknown version is answered."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")
_FIRST_VERSION_WITH_SOFTWARE = 3
_FIRST_VERSION_WITH_LEVEL_0 = 4
TRANSACTION_VERSION: Final = "transaction.version"


def unsupported_version_response() -> Any:
    """The answer, to be built as `FALLBACK_VERSION`, to an ApiVersions of an unknown version."""
    own = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=VERSIONS[0], max_version=VERSIONS[1])
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


class ApiVersionsHandler:
    """See the module."""

    def __init__(self, advertised: Mapping[ApiKey, tuple[int, int]]) -> None:
        empty = [key for key, (first, last) in advertised.items() if first > last]
        if empty:
            raise ValueError(f"empty version ranges: {empty}")
        served = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in sorted(advertised.items())
        ]
        supported = SupportedFeatureKey(
            name=TRANSACTION_VERSION, min_version=0, max_version=FINALIZED_TRANSACTION_VERSION
        )
        self._response = _response(served, [])
        self._response_from_level_0 = _response(served, [supported])

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, at once; always the same object for a version."""
        if ctx.api_version >= _FIRST_VERSION_WITH_SOFTWARE and not (
            _SOFTWARE.match(request.client_software_name)
            and _SOFTWARE.match(request.client_software_version)
        ):
            return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
        if ctx.api_version >= _FIRST_VERSION_WITH_LEVEL_0:
            return self._response_from_level_0
        return self._response

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code and no API."""
        return ApiVersionsResponse(error_code=code, api_keys=[])


def _response(served: list[Any], supported: list[Any]) -> Any:
    finalized = FinalizedFeatureKey(
        name=TRANSACTION_VERSION,
        max_version_level=FINALIZED_TRANSACTION_VERSION,
        min_version_level=FINALIZED_TRANSACTION_VERSION,
    )
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=served,
        supported_features=supported,
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=[finalized],
    )
