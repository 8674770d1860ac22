"""Finalized features: the levels of new behaviour that clients may rely on (KIP-584).

    supported   the range of levels that this software has, `SUPPORTED`
    finalized   the one level that an operator has chosen, kept in the tree under /feature

Rules (Kafka's FeatureControlManager)

1. All changes of a request are made, or none; the error is that of the first refused one.
2. A level must be supported. A lower level must be requested as a downgrade, a higher one as an
   upgrade.
3. Level 0 is the same as a feature that is not finalized.
4. The epoch grows with each change: clients use the levels with the highest epoch they have seen.

While /feature is missing every feature has the initial level of new clusters. Levels only determine
the answers to clients: requests are served at any level, because a client that asked before a
downgrade continues with the level that it got.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from broker.cluster.metadata_store import Create, MetadataStore, MetadataStoreError, Put
from broker.cluster.tree_values import FEATURES, decode_features, encode_features
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Lock

log = logging.getLogger(__name__)

TRANSACTION_VERSION: Final = "transaction.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedLevels:
    """The levels of a feature that this software supports."""

    lowest: int
    highest: int
    initial: int
    """The level of new clusters."""


SUPPORTED: Final[Mapping[str, SupportedLevels]] = MappingProxyType(
    {
        # 2: an epoch per transaction, partitions added by Produce (KIP-890).
        TRANSACTION_VERSION: SupportedLevels(lowest=0, highest=2, initial=2),
    }
)


class UpgradeType(IntEnum):
    """The direction that a change may have; the values are the numbers in the request."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """One feature's new level."""

    feature: str
    level: int
    upgrade_type: int
    """A number that is no `UpgradeType` is refused."""


class Features:
    """The finalized levels, which can be read at any time without waiting."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._changing = Lock()
        self._levels = {name: levels.initial for name, levels in SUPPORTED.items()}
        self.epoch = 0
        """Grows with each change."""

    @property
    def levels(self) -> Mapping[str, int]:
        """Feature to level, of those that are finalized above 0."""
        return MappingProxyType(self._levels)

    async def load(self) -> None:
        """Read the finalized levels. Raises MetadataStoreError.

        A level above the highest supported one (a newer version wrote it) counts as the highest.
        """
        node = await self._store.get(FEATURES)
        if node is None:
            return
        self.epoch = node.version + 1
        self._levels = {}
        for name, level in decode_features(node.value).items():
            supported = SUPPORTED.get(name)
            if supported is None or not supported.lowest <= level <= supported.highest:
                log.error("Level %d of the finalized feature %s is not supported", level, name)
            if supported is not None:
                self._levels[name] = min(level, supported.highest)

    async def update(
        self, updates: Collection[FeatureUpdate], *, validate_only: bool = False
    ) -> None:
        """Change levels (rule 1). Raises KafkaError INVALID_UPDATE_VERSION with the reason."""
        async with self._changing:
            for one in updates:
                self._check(one)
            if validate_only:
                return
            levels = self._levels | {one.feature: one.level for one in updates}
            levels = {name: level for name, level in levels.items() if level > 0}
            if levels == self._levels:
                return
            await self._write(levels)
        log.info("Finalized features: %s", levels)

    def _check(self, update: FeatureUpdate) -> None:
        current = self._levels.get(update.feature, 0)
        reason = (
            _unknown_type(update)
            or _unsupported(update.feature, update.level)
            or _wrong_way(update, current)
        )
        if reason is not None:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid update version {update.level} for feature {update.feature}. {reason}",
            )

    async def _write(self, levels: dict[str, int]) -> None:
        value = encode_features(levels)
        node = await self._store.get(FEATURES)
        try:
            if node is None:
                await self._store.apply([Create(FEATURES, value)])
            else:
                await self._store.apply([Put(FEATURES, value, node.version)])
        except MetadataStoreError as error:
            raise KafkaError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from error
        self._levels = levels
        self.epoch = 1 if node is None else node.version + 2


def _unknown_type(update: FeatureUpdate) -> str | None:
    if update.upgrade_type in UpgradeType.__members__.values():
        return None
    return "The controller does not support the given upgrade type."


def _unsupported(feature: str, level: int) -> str | None:
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED.get(feature)
    if supported is None:
        return "This broker does not support this feature."
    if not supported.lowest <= level <= supported.highest:
        return f"This broker only supports versions {supported.lowest}-{supported.highest}"
    return None


def _wrong_way(update: FeatureUpdate, current: int) -> str | None:
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None
