"""The place of an archive, and its lock, which one process at a time holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.archive.place import Place, absolute
from pipeline.errors import PipelineError


def test_the_state_lies_beside_the_table_where_no_listing_of_it_looks() -> None:
    place = Place.of("/lake/orders/")
    assert place.table == "/lake/orders"
    assert place.checkpoint == "/lake/_orders.archive/checkpoint"
    assert not place.staging.startswith(place.table + "/")


def test_a_uri_stays_as_it_is_and_a_path_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("s3a://bucket/lake/") == "s3a://bucket/lake"
    assert absolute("lake/orders") == f"{tmp_path}/lake/orders"
    assert absolute("file:///lake/orders") == "/lake/orders"


@pytest.mark.parametrize("table", ["s3a://bucket", "/orders"])
def test_a_table_without_room_beside_it_needs_a_state(table: str) -> None:
    with pytest.raises(PipelineError, match="--state"):
        Place.of(table)
    place = Place.of(table, "/elsewhere")
    assert place.checkpoint == "/elsewhere/checkpoint"
    assert place.staging == f"{table}/_archive/staging"


def test_staging_stays_on_the_tables_file_system_wherever_the_state_is() -> None:
    """Files are renamed from there into the table, which is one step within a file system only."""
    assert Place.of("/lake/orders", "/fast/state").staging == "/lake/_orders.archive/staging"


def test_the_lock_is_held_by_one(tmp_path: Path) -> None:
    place = Place.of(str(tmp_path / "orders"))
    with (
        place.lock(),
        pytest.raises(PipelineError, match="another process is at work"),
        place.lock(0),
    ):
        pass
    with place.lock():
        pass


def test_a_child_that_inherited_the_lock_holds_it_until_it_ends(tmp_path: Path) -> None:
    """The JVM of a driver that was killed: it may still write."""
    place = Place.of(str(tmp_path / "orders"))
    with place.lock() as descriptor:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor]
        )
    with pytest.raises(PipelineError), place.lock(0):
        pass
    child.communicate(b"\n")
    with place.lock() as again:
        assert os.fstat(again)


def test_the_lock_of_a_remote_table_is_not_opened_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Place.of("s3a://bucket/orders")
    with place.lock():
        (lock,) = tmp_path.iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PipelineError, match="cannot open the lock"), place.lock(0):
        pass
    assert not (tmp_path / "elsewhere").exists()
