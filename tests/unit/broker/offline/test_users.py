"""Users are made before a broker runs, in its own store."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.offline.users import main
from broker.security.scram_credentials import describe
from broker.world.sqlite_medium import SqliteMedia
from protocol.sasl.scram import ScramMechanism, credential_of, salted_password
from storage.log_dir import (
    LogDir,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.stores import open_store

Users = Callable[..., tuple[int, Any]]
ALICE = "alice ü, \n"
PASSWORD = "geheim ü\n2"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"broker.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    return path


@pytest.fixture
def users(
    properties: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Users:
    """Runs the command; returns its code, and its answer or what it says of a failure."""

    def run(*words: str, password: str = PASSWORD) -> tuple[int, Any]:
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(password)))
        code = main([str(properties), *words])
        told = capsys.readouterr()
        return code, told.err if code else json.loads(told.out)

    return run


def written(properties: Path) -> EmbeddedStore:
    """The store that the command has written."""
    return at_once(open_store(str(properties.parent / "a" / SqliteMedia.file_name)))


def test_a_user_is_added_listed_and_removed(users: Users) -> None:
    def done(*words: str) -> Any:
        code, answer = users(*words)
        assert code == 0, answer
        assert answer["start_refused"] is None
        return answer["users"]

    assert done() == []
    both = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096}
    assert done("--add", ALICE) == [{"name": ALICE, "mechanisms": both}]
    bob = {"name": "bob", "mechanisms": {"SCRAM-SHA-512": 8192}}
    assert done("--add", "bob", "--mechanism=SCRAM-SHA-512", "--iterations=8192") == [bob]
    assert done() == [{"name": ALICE, "mechanisms": both}, bob]
    fewer = {"SCRAM-SHA-256": 4096}
    assert done("--remove", ALICE, "--mechanism=SCRAM-SHA-512") == [
        {"name": ALICE, "mechanisms": fewer}
    ]
    assert done("--remove", ALICE) == [{"name": ALICE, "mechanisms": {}}]
    assert done() == [bob]


def test_directories_in_memory_have_no_users_before_the_broker_runs(
    properties: Path, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(properties.parent)
    properties.write_text("log.dirs=memory:\n")
    code, told = users("--add", ALICE)
    assert (code, "is memory of the broker's process" in told) == (1, True), told
    assert [path.name for path in properties.parent.iterdir()] == [properties.name]


def test_the_logs_of_a_member_are_left_to_its_cluster(properties: Path, users: Users) -> None:
    (properties.parent / "a" / "t-0").mkdir(parents=True)
    write_meta_properties(OsFileSystem(), f"{properties.parent}/a", MetaProperties(version=0))
    code, told = users("--add", ALICE)
    assert (code, "zookeeper.connect is not set" in told) == (1, True), told


def test_the_credential_is_what_the_broker_verifies_with(properties: Path, users: Users) -> None:
    assert users("--add", ALICE)[0] == 0
    found = at_once(describe(written(properties), ALICE))
    assert set(found) == set(ScramMechanism)
    salts = set()
    for mechanism, credential in found.items():
        salted = salted_password(mechanism, PASSWORD, credential.salt, 4096)
        assert credential == credential_of(mechanism, salted, credential.salt, 4096)
        salts.add(credential.salt)
    assert len(salts) == 2
    assert {
        read_meta_properties(OsFileSystem(), str(properties.parent / one)).node_id  # type: ignore[union-attr]
        for one in "ab"
    } == {3}


@pytest.mark.parametrize(
    ("words", "password", "told"),
    [
        (("--remove", "bob"), "", "there is no user bob with that mechanism"),
        (("--add", "bob"), "", "a user has a name and a password"),
        (("--add", ""), "x", "a user has a name and a password"),
        (("--add", "bob", "--iterations=4095"), "x", "between 4096 and 16384"),
        (("--add", "bob", "--iterations=16385"), "x", "between 4096 and 16384"),
        (("--add", "bob", "--override=log.dirs=/etc"), "x", "/etc is a directory that is not"),
        (("--override=num.partitions=x",), "", "num.partitions"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    users: Users, words: tuple[str, ...], password: str, told: str
) -> None:
    code, answer = users(*words, password=password)
    assert code == 1
    assert told in answer
    assert answer.count("\n") == 1


def test_a_broker_that_runs_keeps_its_store(properties: Path, users: Users) -> None:
    (properties.parent / "a").mkdir()
    running = LogDir(OsFileSystem(), str(properties.parent / "a"))
    running.lock()
    code, answer = users("--add", "bob")
    running.unlock()
    assert code == 1
    assert "lock" in answer.lower()


def test_what_the_broker_refuses_to_start_with_is_said_beside(users: Users) -> None:
    words = ("--add", "bob", "--override=authorizer.class.name=x.Y")
    code, answer = users(*words)
    assert code == 0
    assert "authorizer.class.name" in answer["start_refused"]


def test_users_of_a_cluster_are_in_zookeeper_and_nowhere_else(
    properties: Path, users: Users
) -> None:
    nobody = "--override=zookeeper.connect=127.0.0.1:1"
    patience = "--override=zookeeper.connection.timeout.ms=300"
    code, answer = users("--add", "bob", nobody, patience)
    assert code == 1
    assert "no ZooKeeper server of 127.0.0.1:1 has answered" in answer
    assert not (properties.parent / "a").exists()


def test_topics_that_kafka_wrote_are_taken_over_as_at_the_first_start(
    properties: Path, users: Users
) -> None:
    partition = properties.parent / "a" / "orders-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").touch()
    assert users("--add", "bob")[0] == 0
    assert at_once(written(properties).children("/brokers/topics")) == ["orders"]
