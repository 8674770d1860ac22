"""The cluster and broker that log directories belong to, on ZooKeeper (S-START-6, S-START-7)."""

from pathlib import Path

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import Create
from broker.cluster.tree_values import CLUSTER_ID, encode_cluster_id
from broker.startup.directory_identity import Identity, settle_member_identity
from config.broker_config import BrokerConfig
from storage.errors import InconsistentBrokerId, InconsistentClusterId, InconsistentMetaProperties
from storage.log_dir import MetaProperties, read_meta_properties, write_meta_properties
from storage.os_filesystem import OsFileSystem
from storage.waits import Work, together
from tests.support.installation import ROOT
from tests.support.stores import new_uuid, open_store

FS = OsFileSystem()
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
PAGE = "docs/cluster.md, From one broker to a cluster,"
OTHER = "4L6g3nShT-eMCtK--X86sw"


def member(store: EmbeddedStore, tmp_path: Path, broker_id: str = "-1") -> Work[Identity]:
    """`store` stands for the tree in ZooKeeper: the contract of both has the calls made here."""
    directories = [str(tmp_path / name) for name in ("a", "b")]
    for directory in directories:
        FS.make_dirs(directory)
    config = BrokerConfig.parse({"log.dirs": ",".join(directories), "broker.id": broker_id})
    return settle_member_identity(store, config, FS, directories, new_uuid=new_uuid)


async def tree(cluster_id: str | None = None) -> EmbeddedStore:
    store = await open_store()
    if cluster_id is not None:
        await store.apply([Create(CLUSTER_ID, encode_cluster_id(cluster_id))])
    return store


def record(tmp_path: Path, **content: object) -> str:
    (tmp_path / "a").mkdir()
    write_meta_properties(FS, str(tmp_path / "a"), MetaProperties(**content))  # type: ignore[arg-type]
    return (tmp_path / "a" / "meta.properties").read_text()


async def test_s_start_7_new_directories_get_version_0_and_no_ids_of_their_own(
    tmp_path: Path,
) -> None:
    store = await tree()
    first = await member(store, tmp_path, "5")
    assert first.broker_id == 5
    assert await store.get(CLUSTER_ID) is not None
    for name in "ab":
        assert read_meta_properties(FS, str(tmp_path / name)) == MetaProperties(
            version=0, node_id=5, cluster_id=first.cluster_id
        )
    assert await member(store, tmp_path, "5") == first
    assert await member(store, tmp_path) == first
    text = (tmp_path / "a" / "meta.properties").read_text()
    assert text == f"#\nbroker.id=5\ncluster.id={first.cluster_id}\nversion=0\n"


async def test_s_start_6_ids_are_generated_by_the_shared_sequence(tmp_path: Path) -> None:
    store = await tree(CLUSTER)
    await store.create("/brokers/seqid")  # as the start makes it
    found = [await member(store, tmp_path / str(number)) for number in range(3)]
    assert [identity.broker_id for identity in found] == [1001, 1002, 1003]
    assert {identity.cluster_id for identity in found} == {CLUSTER}


async def test_s_start_7_brokers_that_start_together_agree_on_one_cluster(
    driven: None, tmp_path: Path
) -> None:
    found: list[Identity] = []
    store = await tree()

    async def one(number: int) -> None:
        found.append(await member(store, tmp_path / str(number), str(number)))

    await together(*(one(number) for number in range(4)))
    assert len({identity.cluster_id for identity in found}) == 1
    assert sorted(identity.broker_id for identity in found) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("cluster_id", "broker_id", "version", "error", "reason"),
    [
        (OTHER, "5", 0, InconsistentClusterId, f"{OTHER} doesn't match stored .* {CLUSTER}"),
        (None, "5", 0, InconsistentClusterId, f"of cluster {CLUSTER}, but there is no cluster yet"),
        (CLUSTER, "6", 0, InconsistentBrokerId, "6"),
        (CLUSTER, "5", 1, InconsistentMetaProperties, f"has version 1: .*{PAGE}"),
    ],
    ids=["another cluster", "no cluster", "another id", "another mode"],
)
async def test_s_start_6_an_id_and_s_start_7_a_cluster_that_differs_changes_nothing(
    tmp_path: Path,
    cluster_id: str | None,
    broker_id: str,
    version: int,
    error: type[Exception],
    reason: str,
) -> None:
    before = record(tmp_path, version=version, node_id=5, cluster_id=CLUSTER)
    store = await tree(cluster_id)
    with pytest.raises(error, match=reason):
        await member(store, tmp_path, broker_id)
    assert (await store.get(CLUSTER_ID) is None) == (cluster_id is None)
    assert await store.get("/brokers/seqid") is None
    assert (tmp_path / "a" / "meta.properties").read_text() == before
    assert not (tmp_path / "b" / "meta.properties").exists()


def test_the_page_that_a_refusal_names_has_that_section() -> None:
    page, heading = PAGE.rstrip(",").split(", ")
    assert f"\n## {heading}\n" in (ROOT / page).read_text()


async def test_a_directory_of_an_old_kafka_gets_what_it_lacks(tmp_path: Path) -> None:
    record(tmp_path, version=0, node_id=5)
    identity = await member(await tree(CLUSTER), tmp_path)
    assert identity == Identity(broker_id=5, cluster_id=CLUSTER)
    for name in "ab":
        found = read_meta_properties(FS, str(tmp_path / name))
        assert found == MetaProperties(version=0, node_id=5, cluster_id=CLUSTER)
