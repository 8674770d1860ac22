from pathlib import Path

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.identity import (
    choose_store_directory,
    resolve_broker_id,
    resolve_cluster_id,
)
from broker.cluster.producer_ids import ProducerIdAllocator, ProducerIdsUsedUp, StoredBlocks
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from protocol.errors import KafkaError
from protocol.types import uuid_from_text, uuid_to_text
from storage.waits import together
from tests.support.stores import new_uuid, open_store


async def test_s_start_7_the_cluster_id_is_made_once(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    store = await open_store(path)
    cluster_id = await resolve_cluster_id(store, new_uuid)
    assert len(cluster_id) == 22
    assert len(uuid_from_text(cluster_id)) == 16
    assert await resolve_cluster_id(store, new_uuid) == cluster_id
    await store.close()
    again = await open_store(path)
    assert await resolve_cluster_id(again, new_uuid) == cluster_id


async def test_s_start_6_ids_are_generated_above_the_reserved_ones(tmp_path: Path) -> None:
    store = await open_store(str(tmp_path / "m.sqlite"))
    config = BrokerConfig.parse({})
    assert await resolve_broker_id(store, config) == 1001
    assert await resolve_broker_id(store, config) == 1002
    for recorded in (1001, 1, 0):
        assert await resolve_broker_id(store, config, recorded=recorded) == recorded
    assert await resolve_broker_id(store, BrokerConfig.parse({"broker.id": "0"}), 7) == 0
    assert await resolve_broker_id(store, BrokerConfig.parse({"node.id": "7"}), 7) == 7
    off = BrokerConfig.parse({"broker.id": "0", "broker.id.generation.enable": "false"})
    assert await resolve_broker_id(store, off) == 0
    high = BrokerConfig.parse({"reserved.broker.max.id": "5000"})
    assert await resolve_broker_id(store, high) == 5003


async def test_producer_ids_never_repeat_over_restarts(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    seen: list[int] = []
    for _ in range(3):
        store = await open_store(path)
        allocator = ProducerIdAllocator(StoredBlocks(store, 0))
        with pytest.raises(ProducerIdsUsedUp):
            allocator.next_id()
        seen += [await allocator.take() for _ in range(1001)]
        assert allocator.next_id() == seen[-1] + 1
        seen.append(seen[-1] + 1)
        await store.close()
    assert len(set(seen)) == len(seen)
    assert seen[0] == 0
    assert seen[1002] == 2000


async def test_producer_ids_that_logs_remember_are_not_given_again_by_an_older_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S-IDEM-1: the new producer's batches would be taken for duplicates of the old one's."""
    store = await open_store(str(tmp_path / "older.sqlite"))
    assert [await ProducerIdAllocator(StoredBlocks(store, 0)).take() for _ in range(2)] == [
        0,
        1000,
    ]
    after = ProducerIdAllocator(StoredBlocks(store, 0))
    after.note_used(999)
    assert await after.take() == 2000, "within the blocks that were recorded"
    after.note_used(2004)
    assert after.next_id() == 2005
    after.note_used(7_000)
    after.note_used(6_000)
    with pytest.raises(ProducerIdsUsedUp):
        after.next_id()
    assert "older than the logs" not in caplog.text
    assert await after.take() == 7_001
    assert "older than the logs" in caplog.text
    assert after.next_id() == 7_002
    assert await ProducerIdAllocator(StoredBlocks(store, 0)).take() == 8_001, "it was recorded"
    after.note_used(2**63 - 2)  # Some client made it up.
    assert after.next_id() == 7_003


async def test_producers_that_ask_at_once_get_different_ids(
    driven: None, store: EmbeddedStore
) -> None:
    allocator = ProducerIdAllocator(StoredBlocks(store, 0))
    got: list[int] = []

    async def take() -> None:
        got.append(await allocator.take())

    await together(*(take() for _ in range(20)))
    assert sorted(got) == list(range(20))


def test_the_metadata_store_is_never_started_anew_while_it_may_lie_on_a_dead_disk() -> None:
    assert choose_store_directory(["/a", "/b"], [], []) == "/a"
    assert choose_store_directory(["/a", "/b"], ["/c"], ["/b"]) == "/b"
    with pytest.raises(ConfigError, match="/c"):
        choose_store_directory(["/a"], ["/c"], [])


def test_random_ids_are_version_4_and_never_look_like_an_option() -> None:
    for _ in range(200):
        value = new_uuid()
        assert value[6] >> 4 == 4
        assert not uuid_to_text(value).startswith("-")


async def test_without_the_store_no_producer_id_is_handed_out(store: EmbeddedStore) -> None:
    await store.close()
    with pytest.raises(KafkaError):
        await ProducerIdAllocator(StoredBlocks(store, 0)).take()
    damaged = await open_store()
    await damaged.create("/latest_producer_id_block", b"{}")
    with pytest.raises(KafkaError):
        await ProducerIdAllocator(StoredBlocks(damaged, 0)).take()
