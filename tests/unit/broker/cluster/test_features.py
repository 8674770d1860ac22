"""Finalized features: what may change, what survives (KIP-584, S-TXN-7)."""

import json
from pathlib import Path

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.features import TRANSACTION_VERSION, Features, FeatureUpdate, UpgradeType
from broker.cluster.metadata_store import MetadataStoreError
from broker.cluster.tree_values import FEATURES, encode_features
from protocol.errors import ErrorCode, KafkaError
from tests.support.stores import open_store, value_of

UP, SAFE, UNSAFE = UpgradeType


def to(level: int, kind: int = UP, feature: str = TRANSACTION_VERSION) -> FeatureUpdate:
    return FeatureUpdate(feature=feature, level=level, upgrade_type=kind)


async def opened(path: Path | str = ":memory:") -> tuple[EmbeddedStore, Features]:
    store = await open_store(str(path))
    features = Features(store)
    await features.load()
    return store, features


async def test_s_txn_7_a_new_cluster_begins_with_transactions_of_version_2() -> None:
    _, features = await opened()
    assert dict(features.levels) == {TRANSACTION_VERSION: 2}
    assert features.epoch == 0


async def test_what_was_settled_survives_and_the_epoch_grows(tmp_path: Path) -> None:
    store, features = await opened(tmp_path / "store")
    epochs = [features.epoch]
    for update in (to(1, SAFE), to(0, UNSAFE), to(2)):
        await features.update([update])
        epochs.append(features.epoch)
    assert epochs == sorted(set(epochs))
    await features.update([to(0, SAFE)])
    assert dict(features.levels) == {}
    await store.close()
    store, again = await opened(tmp_path / "store")
    assert dict(again.levels) == {}
    assert again.epoch == features.epoch > epochs[-1]
    value = json.loads(await value_of(store, FEATURES))
    assert value == {"version": 2, "status": 1, "features": {}}


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (to(3), "only supports versions 0-2"),
        (to(-1, SAFE), "cannot be less than 0"),
        (to(1), "Can't downgrade the version of this feature without"),
        (to(1, 0), "does not support the given upgrade type"),
        (to(1, 4), "does not support the given upgrade type"),
        (to(1, feature="metadata.version"), "does not support this feature"),
    ],
)
async def test_what_is_refused_changes_nothing_of_the_request(
    update: FeatureUpdate, reason: str
) -> None:
    _, features = await opened()
    with pytest.raises(KafkaError, match=reason) as refused:
        await features.update([to(2), update, to(1, SAFE)])
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert (dict(features.levels), features.epoch) == ({TRANSACTION_VERSION: 2}, 0)


async def test_up_is_no_downgrade_and_the_same_level_is_either() -> None:
    _, features = await opened()
    await features.update([to(1, SAFE)])
    with pytest.raises(KafkaError, match="Can't downgrade to a newer version"):
        await features.update([to(2, UNSAFE)])
    epoch = features.epoch
    for kind in UpgradeType:
        await features.update([to(1, kind)])
    assert features.epoch == epoch, "nothing changed"
    await features.update([to(2)], validate_only=True)
    assert dict(features.levels) == {TRANSACTION_VERSION: 1}


async def test_a_store_that_fails_leaves_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    store, features = await opened()

    async def fails(operations: object) -> None:
        raise MetadataStoreError(FEATURES, "no space")

    monkeypatch.setattr(store, "apply", fails)
    with pytest.raises(KafkaError, match="no space") as refused:
        await features.update([to(1, SAFE)])
    assert refused.value.code is ErrorCode.FEATURE_UPDATE_FAILED
    assert dict(features.levels) == {TRANSACTION_VERSION: 2}


async def test_levels_of_a_newer_software_are_taken_as_far_as_they_are_known(
    store: EmbeddedStore,
) -> None:
    await store.create(FEATURES, encode_features({TRANSACTION_VERSION: 9, "future": 1}))
    features = Features(store)
    await features.load()
    assert dict(features.levels) == {TRANSACTION_VERSION: 2}
