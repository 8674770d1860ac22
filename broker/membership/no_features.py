"""Finalized features in a cluster: there are none.

Brokers of Kafka 3.9 stop when a feature is finalized that they do not know, so /feature is left to
whoever wrote it. Clients then use the first transaction protocol, as with Kafka 3.9 on ZooKeeper.

Source: `kafka.controller.KafkaController.updateFeatures` (3.9).
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from broker.cluster.features import FeatureUpdate
from protocol.errors import ErrorCode, KafkaError

_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class NoFeatures:
    """In the place of `broker.cluster.features.Features`."""

    epoch: int = -1
    """Unknown: ApiVersions leaves it out."""
    levels: Mapping[str, int] = _NONE

    async def load(self) -> None:
        """Nothing to read."""

    async def update(
        self, updates: Collection[FeatureUpdate], *, validate_only: bool = False
    ) -> None:
        """Raise KafkaError INVALID_REQUEST if there is an update."""
        if updates:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Could not apply finalized feature update because the provided feature is not"
                " supported.",
            )
