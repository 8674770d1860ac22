"""The cluster and broker that log directories belong to (S-START-6, S-START-7)."""

from pathlib import Path
from typing import Any

import pytest

from broker.startup.directory_identity import Failed, Identity, refuse, settle_identity
from config.broker_config import BrokerConfig
from storage.errors import InconsistentBrokerId, InconsistentClusterId
from storage.log_dir import MetaProperties, read_meta_properties, write_meta_properties
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.stores import new_uuid, open_store

FS = OsFileSystem()


def settle(tmp_path: Path, names: list[str], failed: Failed = refuse, **settings: Any) -> Identity:
    directories = [str(tmp_path / name) for name in names]
    for directory in directories:
        FS.make_dirs(directory)
    config = BrokerConfig.parse(
        {"log.dirs": ",".join(directories), **{k.replace("_", "."): v for k, v in settings.items()}}
    )

    async def main() -> Identity:
        store = await open_store(str(tmp_path / "store.sqlite"))
        try:
            return await settle_identity(
                store, config, FS, directories, new_uuid=new_uuid, failed=failed
            )
        finally:
            await store.close()

    return at_once(main())


def test_what_is_synced_is_written_in_a_thread(tmp_path: Path) -> None:
    config = BrokerConfig.parse({"log.dirs": f"{tmp_path}/a,{tmp_path}/b"})
    for directory in config.log_dirs:
        FS.make_dirs(directory)
    store = at_once(open_store())
    for written in (2, 0):
        work = Calls(settle_identity(store, config, FS, config.log_dirs, new_uuid=new_uuid))
        made = []
        while work.call is not None:
            made.append(work.call.work)
            work.run()
            work.complete()
        assert made.count(write_meta_properties) == written


def stored(tmp_path: Path, name: str) -> MetaProperties:
    found = read_meta_properties(FS, str(tmp_path / name))
    assert found is not None
    return found


def test_s_start_7_new_directories_get_one_identity_and_ids_of_their_own(tmp_path: Path) -> None:
    identity = settle(tmp_path, ["a", "b"], broker_id="5")
    a, b = stored(tmp_path, "a"), stored(tmp_path, "b")
    assert identity.broker_id == a.node_id == b.node_id == 5
    assert identity.cluster_id == a.cluster_id == b.cluster_id
    assert len(identity.cluster_id) == 22
    assert a.directory_id != b.directory_id
    assert settle(tmp_path, ["a", "b"], broker_id="5") == identity
    assert stored(tmp_path, "a") == a


def test_s_start_6_a_generated_id_is_kept(tmp_path: Path) -> None:
    first = settle(tmp_path, ["a"])
    assert first.broker_id == 1001
    assert settle(tmp_path, ["a"]) == first


def test_s_start_6_another_broker_id_is_refused(tmp_path: Path) -> None:
    settle(tmp_path, ["a"], broker_id="5")
    with pytest.raises(InconsistentBrokerId):
        settle(tmp_path, ["a"], broker_id="6")


def test_s_start_6_another_cluster_is_refused(tmp_path: Path) -> None:
    settle(tmp_path, ["a"], broker_id="5")
    FS.make_dirs(str(tmp_path / "b"))
    strange = MetaProperties(node_id=5, cluster_id="A" * 22)
    write_meta_properties(FS, str(tmp_path / "b"), strange)
    with pytest.raises(InconsistentClusterId):
        settle(tmp_path, ["a", "b"], broker_id="5")


def test_a_directory_of_kafka_2_keeps_its_ids_and_its_version(tmp_path: Path) -> None:
    FS.make_dirs(str(tmp_path / "a"))
    old = MetaProperties(version=0, node_id=3, cluster_id="abcdefghijklmnopqrstuv")
    write_meta_properties(FS, str(tmp_path / "a"), old)
    identity = settle(tmp_path, ["a"], broker_id="3")
    assert identity.cluster_id == "abcdefghijklmnopqrstuv"
    assert stored(tmp_path, "a") == old


@pytest.mark.parametrize("name", ["meta.properties", "meta.properties.tmp"])
def test_s_rec_7_a_directory_whose_disk_fails_has_no_say(tmp_path: Path, name: str) -> None:
    FS.make_dirs(str(tmp_path / "b" / name))  # can be neither read nor written
    failed: list[str] = []
    identity = settle(tmp_path, ["a", "b"], lambda path, error: failed.append(path), broker_id="5")
    assert failed == [str(tmp_path / "b")]
    assert stored(tmp_path, "a").node_id == identity.broker_id == 5
    with pytest.raises(IsADirectoryError):
        settle(tmp_path, ["a", "b"], broker_id="5")
