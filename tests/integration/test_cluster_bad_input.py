"""A cluster's broker that cannot start: one clear line, exit code 1, nothing changed on disk."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.cluster.member import Kind, Member, new_place
from tests.support.installation import under_test
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeper


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """The server of all tests; each takes a chroot of its own."""
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def snapshot(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, and its content."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in sorted(directory.rglob("*"))
        if path.name != ".lock"  # Empty; whoever looks into a directory takes it.
    }


def member(directory: Path, connect: str, **settings: str) -> Member:
    """A broker that was not started."""
    changed = {name.replace("__", "."): value for name, value in settings.items()}
    return Member(new_place(1, directory, connect, changed), Kind.OURS)


def refused(broker: Member, changes: Mapping[str, str] | None = None) -> str:
    """Start it; return the one line that it says. Raises AssertionError if it starts."""
    directory = broker.place.directory
    directory.mkdir(parents=True, exist_ok=True)
    settings = {**broker.place.settings(), **(changes or {})}
    properties = directory / "server.properties"
    properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    before = snapshot(broker.place.log_dir)
    used = under_test()
    done = used.run([*used.broker(), str(properties)], check=False)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert snapshot(broker.place.log_dir) == before
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def test_zookeeper_that_does_not_answer(tmp_path: Path) -> None:
    port = free_port()
    broker = member(tmp_path, f"127.0.0.1:{port}", zookeeper__connection__timeout__ms="2000")
    said = refused(broker)
    assert f"127.0.0.1:{port}" in said
    assert "zookeeper.connect" in said


def test_a_chroot_that_is_no_path(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    for chroot in ("/a//b", "/a/../b", "/a/"):
        said = refused(member(tmp_path, f"{zookeeper.connect}{chroot}"))
        assert chroot in said, said


def test_the_chroot_of_another_cluster(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    """A directory that belongs to a cluster does not join another one, nor found a new one."""
    broker = member(tmp_path, f"{zookeeper.connect}/first")
    broker.start().stop()
    said = refused(member(tmp_path, f"{zookeeper.connect}/second"))
    assert "The log directories are of cluster" in said, said
    assert "zookeeper.connect" in said, said


def test_a_cluster_id_that_differs(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/ids"
    broker = member(tmp_path, connect)
    broker.start().stop()
    meta = broker.place.log_dir / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("cluster.id")]
    meta.write_text("\n".join((*lines, "cluster.id=AnotherClustersIdentity", "")))
    said = refused(member(tmp_path, connect))
    assert "AnotherClustersIdentity" in said, said


def test_an_id_that_another_broker_has(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/taken"
    first = member(tmp_path / "first", connect)
    with_id = first.start()
    try:
        settings = {"zookeeper__session__timeout__ms": "2000"}
        said = refused(member(tmp_path / "second", connect, **settings))
        assert "1" in said and "/brokers/ids/1" in said, said
        assert with_id.running
    finally:
        first.stop()


def test_an_inter_broker_listener_that_is_not_there(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    broker = member(tmp_path, f"{zookeeper.connect}/listener")
    said = refused(broker, {"inter.broker.listener.name": "NOWHERE"})
    assert "inter.broker.listener.name" in said, said
    assert "CLIENTS,BROKERS" in said, said
