"""ApiVersions (key 18): which APIs are served, in which versions.

Behaviour
* A client asks this first; the answer needs nothing but the table of handlers.
* Produce is advertised from 0 although older versions may be refused: librdkafka drops gzip,
  snappy and lz4 when the minimum is 3 (KAFKA-18659). No range is ever empty: aiokafka asserts that.
* The answer holds the levels of finalized features (`broker.cluster.features`): at
  `transaction.version` 2 clients that know it use the second transaction protocol (KIP-890), others
  the first, side by side.
* On a listener with SASL a client may send it once before the handshake, and not during the
  exchange (`broker.security.authentication`).
* The connection answers a version that is not served with `unsupported_version_response` in v0
  form, because it cannot parse the request (KIP-511).

Version notes
* v0 has no throttle time; aiokafka sends v0 only.
* v3+: the client names its software; a name or version of other characters than letters, digits,
  inner dots and inner dashes is an INVALID_REQUEST.
* v3+: features. v4+: also supported features whose lowest level is 0.
* v5+: a client that has learned of this address from Metadata names the cluster and the broker that
  it means. If another broker answers there, its metadata is stale: REBOOTSTRAP_REQUIRED (KIP-1242).
  One name without the other is an INVALID_REQUEST.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.cluster.features import SUPPORTED
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from broker.services import FinalizedFeatures

API: Final = Api(
    key=ApiKey.API_VERSIONS,
    versions=(0, 5),
    make=lambda s: ApiVersionsHandler(
        s.advertised, s.features, s.image.cluster_id, s.config.broker_id
    ),
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")
_FIRST_VERSION_WITH_SOFTWARE = 3
_FIRST_VERSION_WITH_LEVEL_0 = 4
_FIRST_VERSION_WITH_CLUSTER = 5
_ANY_NODE = -1


def unsupported_version_response() -> ApiVersionsResponse:
    """The answer to an ApiVersions of an unknown version; the caller encodes it in version 0."""
    own = ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=API.versions[0], max_version=API.versions[1]
    )
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


class ApiVersionsHandler(CodeAlone):
    """Lists the registry's APIs with their versions, and the features of this broker."""

    response = ApiVersionsResponse

    def __init__(
        self,
        advertised: Mapping[ApiKey, tuple[int, int]],
        features: "FinalizedFeatures",
        cluster_id: str,
        broker_id: int,
    ) -> None:
        empty = [key for key, (first, last) in advertised.items() if first > last]
        if empty:
            raise ValueError(f"empty version ranges: {empty}")
        self._features = features
        self._own_place = (cluster_id, broker_id)
        self._served = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in sorted(advertised.items())
        ]
        self._note_features()

    def _note_features(self) -> None:
        supported = [
            (
                levels.lowest,
                SupportedFeatureKey(
                    name=name, min_version=levels.lowest, max_version=levels.highest
                ),
            )
            for name, levels in sorted(SUPPORTED.items())
        ]
        self._epoch = self._features.epoch
        self._supported = [key for lowest, key in supported if lowest > 0]
        self._supported_from_level_0 = [key for _, key in supported]
        self._finalized = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(self._features.levels.items())
        ]

    async def __call__(
        self, ctx: RequestContext, request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        """The response, at once; its lists are the same until a feature changes."""
        authentication = ctx.connection.authentication
        if authentication is not None and not await authentication.ask_versions(ctx):
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
        if self._features.epoch != self._epoch:
            self._note_features()
        if ctx.api_version >= _FIRST_VERSION_WITH_SOFTWARE and not (
            _SOFTWARE.match(request.client_software_name)
            and _SOFTWARE.match(request.client_software_version)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if ctx.api_version >= _FIRST_VERSION_WITH_CLUSTER:
            place = (request.cluster_id, request.node_id)
            if (place[0] is None) != (place[1] == _ANY_NODE):
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            if place not in ((None, _ANY_NODE), self._own_place):
                raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED)
        if authentication is not None:
            authentication.tell_versions()
        from_level_0 = ctx.api_version >= _FIRST_VERSION_WITH_LEVEL_0
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=self._served,
            supported_features=self._supported_from_level_0 if from_level_0 else self._supported,
            finalized_features_epoch=self._epoch,
            finalized_features=self._finalized,
        )
