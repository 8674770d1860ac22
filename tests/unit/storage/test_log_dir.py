"""Log directories: owner, lock, clean-shutdown marker, topic ids."""

from pathlib import Path

import pytest

from protocol.types import uuid_from_text, uuid_to_text
from storage.errors import (
    CheckpointError,
    DirectoryLocked,
    InconsistentBrokerId,
    InconsistentClusterId,
    InconsistentMetaProperties,
)
from storage.log_dir import (
    LogDir,
    MetaProperties,
    read_meta_properties,
    read_partition_metadata,
    reconcile,
    write_meta_properties,
    write_partition_metadata,
)
from tests.support.faulty_filesystem import FaultyFileSystem

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "storage"
ID = "gSVbeKkLQpiGvDWDZ7tFzA"
CLUSTER = "A" * 22


V0 = MetaProperties(version=0, node_id=3, cluster_id="odd=clus:ter #1")
V1 = MetaProperties(version=1, node_id=7, cluster_id=CLUSTER, directory_id=ID)


@pytest.mark.parametrize(("name", "meta"), [("v0", V0), ("v1", V1)])
def test_s_start_6_meta_properties_of_kafka_are_read(
    fs: FaultyFileSystem, name: str, meta: MetaProperties
) -> None:
    fs.write_bytes("/d/meta.properties", (GOLDEN / f"meta.{name}.properties").read_bytes())
    assert read_meta_properties(fs, "/d") == meta


@pytest.mark.parametrize(("name", "meta"), [("v0", V0), ("v1", V1)])
def test_s_start_6_meta_properties_are_written_as_kafka_does(
    fs: FaultyFileSystem, name: str, meta: MetaProperties
) -> None:
    """The same lines; Java writes them in no particular order and adds the date."""
    write_meta_properties(fs, "/d", meta)
    golden = (GOLDEN / f"meta.{name}.properties").read_text().splitlines()
    ours = fs.read_bytes("/d/meta.properties").decode().splitlines()
    assert sorted(line for line in ours if line[0] != "#") == sorted(
        line for line in golden if line[0] != "#"
    )
    assert read_meta_properties(fs, "/d") == meta


def test_a_new_directory_has_no_owner(fs: FaultyFileSystem) -> None:
    assert read_meta_properties(fs, "/d") is None


def test_version_0_may_be_nearly_empty(fs: FaultyFileSystem) -> None:
    fs.write_bytes("/d/meta.properties", b"#\nversion=0\n")
    assert read_meta_properties(fs, "/d") == MetaProperties(version=0)


@pytest.mark.parametrize(
    "content",
    [
        b"version=2\n",
        b"version=x\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=c\n",
        b"version=0\nbroker.id=one\n",
        b"version=0\nbroker.id=2147483648\n",
        b"version=0\nbroker.id=-2147483649\n",
        b"version=0\ndirectory.id=short\n",
        b"version=\\u12\n",
    ],
)
def test_s_start_6_senseless_meta_properties_stop_the_start(
    fs: FaultyFileSystem, content: bytes
) -> None:
    fs.write_bytes("/d/meta.properties", content)
    with pytest.raises(InconsistentMetaProperties, match=r"/d/meta\.properties"):
        read_meta_properties(fs, "/d")


def test_s_start_6_directories_that_agree_give_one_identity() -> None:
    stored = {"/a": V1, "/b": MetaProperties(version=1, node_id=7, cluster_id=CLUSTER), "/c": None}
    assert reconcile(stored, node_id=7, cluster_id=CLUSTER) == MetaProperties(
        version=1, node_id=7, cluster_id=CLUSTER
    )
    assert reconcile(stored).node_id == 7
    assert reconcile({"/a": None}) == MetaProperties(version=1)
    assert reconcile({"/a": None}, node_id=5, cluster_id="c").cluster_id == "c"


def test_s_start_6_other_broker_id_than_configured() -> None:
    with pytest.raises(InconsistentBrokerId, match=r"broker.id 8 .* broker.id 7"):
        reconcile({"/a": V1}, node_id=8)


def test_s_start_6_other_broker_id_in_a_sibling_directory() -> None:
    with pytest.raises(InconsistentBrokerId, match=r"/a -> 7, /b -> 3"):
        reconcile({"/a": V1, "/b": V0})


def test_s_start_6_other_cluster_id() -> None:
    with pytest.raises(InconsistentClusterId, match="wrong cluster"):
        reconcile({"/a": V1}, cluster_id="other")
    with pytest.raises(InconsistentClusterId, match="/a -> A"):
        reconcile({"/a": V1, "/b": MetaProperties(version=1, node_id=7, cluster_id="x")})


def test_s_rec_7_a_directory_has_one_owner(fs: FaultyFileSystem) -> None:
    first, second = LogDir(fs, "/d"), LogDir(fs, "/d")
    first.lock()
    first.lock()
    with pytest.raises(DirectoryLocked, match=r"Failed to acquire lock on file \.lock in /d"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()
    second.unlock()


def test_s_rec_1_the_clean_shutdown_marker_is_gone_before_loading(fs: FaultyFileSystem) -> None:
    directory = LogDir(fs, "/d")
    assert not directory.take_clean_shutdown_marker()
    directory.write_clean_shutdown_marker(42)
    golden = (GOLDEN / ".kafka_cleanshutdown").read_bytes()
    assert fs.read_bytes("/d/.kafka_cleanshutdown") == golden
    assert LogDir(fs.crash(forget_names=True), "/d").was_cleanly_shut_down()
    assert directory.take_clean_shutdown_marker()
    assert not directory.was_cleanly_shut_down()
    assert not LogDir(fs.crash(forget_names=True), "/d").was_cleanly_shut_down()


def test_partition_metadata_is_that_of_kafka(fs: FaultyFileSystem) -> None:
    golden = (GOLDEN / "partition.metadata").read_bytes()
    assert read_partition_metadata(fs, "/d") is None
    write_partition_metadata(fs, "/d", uuid_from_text(ID))
    assert fs.read_bytes("/d/partition.metadata") == golden
    read = read_partition_metadata(fs, "/d")
    assert read is not None
    assert uuid_to_text(read) == ID


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", 1),
        (b"version: 1\ntopic_id: " + ID.encode(), 1),
        (b"version 0\n", 1),
        (b"version: 0\n", 2),
        (b"version: 0\ntopic_id: xyz", 2),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 2),
        (b"\xff\xfe", 1),
    ],
)
def test_malformed_partition_metadata_names_the_line(
    fs: FaultyFileSystem, content: bytes, line: int
) -> None:
    fs.write_bytes("/d/partition.metadata", content)
    with pytest.raises(CheckpointError) as caught:
        read_partition_metadata(fs, "/d")
    assert caught.value.line == line


def test_the_epoch_in_a_kraft_brokers_marker_is_handed_on(fs: FaultyFileSystem) -> None:
    for found, left in (
        (b'{"version":0,"brokerEpoch":12}', b'{"version":0,"brokerEpoch":12}'),
        (b"", b'{"version":0,"brokerEpoch":-1}'),
        (b"[1]", b'{"version":0,"brokerEpoch":-1}'),
        (b'{"brokerEpoch":9223372036854775808}', b'{"version":0,"brokerEpoch":-1}'),
        (b'{"brokerEpoch":1e999}', b'{"version":0,"brokerEpoch":-1}'),
        (b"[" * 100_000, b'{"version":0,"brokerEpoch":-1}'),
    ):
        fs.write_atomic("/d/.kafka_cleanshutdown", (found,))
        log_dir = LogDir(fs, "/d")
        assert log_dir.take_clean_shutdown_marker()
        log_dir.write_clean_shutdown_marker()
        assert fs.read_bytes("/d/.kafka_cleanshutdown") == left
