"""UpdateFeatures over the wire, in every version (KIP-584)."""

from collections.abc import Collection
from typing import Any

import pytest

from broker.api.update_features import API, UpdateFeaturesHandler
from broker.cluster.features import FeatureUpdate, UpgradeType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from storage.waits import PAUSE
from tests.support.api_calls import call


class FakeFeatures:
    """Remembers the updates; refuses levels above 2."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[FeatureUpdate, ...], bool]] = []

    async def update(
        self, updates: Collection[FeatureUpdate], *, validate_only: bool = False
    ) -> None:
        await PAUSE
        self.asked.append((tuple(updates), validate_only))
        if any(one.level > 2 for one in updates):
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "too high")


def ask(features: FakeFeatures, version: int, level: int, **request: Any) -> Any:
    one = FeatureUpdateKey(
        feature="transaction.version",
        max_version_level=level,
        allow_downgrade=version == 0,
        upgrade_type=3,
    )
    return call(
        UpdateFeaturesHandler(features),  # type: ignore[arg-type]
        ApiKey.UPDATE_FEATURES,
        version,
        UpdateFeaturesRequest(feature_updates=[one], **request),
    )


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
def test_every_version(version: int) -> None:
    features = FakeFeatures()
    response = ask(features, version, 1, validate_only=True)
    assert (response.error_code, response.error_message) == (0, None)
    results = [(one.feature, one.error_code) for one in response.results]
    assert results == ([("transaction.version", 0)] if version <= 1 else [])
    [((update,), validate_only)] = features.asked
    kind = UpgradeType.SAFE_DOWNGRADE if version == 0 else UpgradeType.UNSAFE_DOWNGRADE
    assert (update.level, update.upgrade_type) == (1, kind)
    assert validate_only is (version >= 1)
    response = ask(features, version, 3)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message.endswith("too high")
    assert list(response.results) == []
