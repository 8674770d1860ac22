"""UpdateFeatures (key 57): change the finalized levels of features.

Behaviour (KIP-584)
* A request's changes are made all or none; INVALID_UPDATE_VERSION is the error of the whole
  response, whose message names the first feature that was refused. `broker.cluster.features` has
  the rules.
* In a cluster no feature is finalized, and each change is an INVALID_REQUEST.
* Connected clients keep the levels that they know; ApiVersions returns the new ones.

Version notes
* v0 says whether downgrades are allowed, v1+ which kind of change is meant. `validate_only` is v1+.
* v0-1 have a result per feature, which is NONE for each.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api
from broker.cluster.features import FeatureUpdate, UpgradeType
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from broker.services import FinalizedFeatures

API: Final = Api(
    key=ApiKey.UPDATE_FEATURES,
    versions=(0, 2),
    most_elements=1_000,
    controller_only=True,
    # ControllerApis.handleUpdateFeatures
    accesses=(ALTER_CLUSTER,),
    make=lambda s: UpdateFeaturesHandler(s.features),
)

LAST_VERSION_WITH_RESULTS: Final = 1


class UpdateFeaturesHandler:
    """Checks new levels of features against what is supported, and has them stored."""

    def __init__(self, features: "FinalizedFeatures") -> None:
        self._features = features

    async def __call__(
        self, ctx: RequestContext, request: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        """The response, when the change is durable."""
        try:
            await self._features.update(
                [_update(ctx.api_version, one) for one in request.feature_updates],
                validate_only=request.validate_only,
            )
        except KafkaError as error:
            return UpdateFeaturesResponse(
                error_code=error.code,
                error_message="The update failed for all features since the following feature "
                f"had an error: {error}",
            )
        results = []
        if ctx.api_version <= LAST_VERSION_WITH_RESULTS:
            results = [UpdatableFeatureResult(feature=u.feature) for u in request.feature_updates]
        return UpdateFeaturesResponse(results=results)

    def error_response(
        self, ctx: RequestContext, request: UpdateFeaturesRequest, code: ErrorCode
    ) -> UpdateFeaturesResponse:
        """The code."""
        return UpdateFeaturesResponse(error_code=code, error_message=code.text)


def _update(version: int, asked: FeatureUpdateKey) -> FeatureUpdate:
    kind = asked.upgrade_type
    if version == 0:
        kind = UpgradeType.SAFE_DOWNGRADE if asked.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(feature=asked.feature, level=asked.max_version_level, upgrade_type=kind)
