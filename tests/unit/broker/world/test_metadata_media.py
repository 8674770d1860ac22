"""Every medium of a metadata store keeps one contract; journals keep it on failing disks, too."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.world.journal_medium import JournalMedia
from broker.world.metadata_medium import (
    MediumError,
    MediumFailed,
    MetadataMedia,
    NodeRow,
    TransientMedium,
)
from broker.world.sqlite_medium import SqliteMedia
from tests.support.faulty_filesystem import FaultyFileSystem

A, B, C = (
    NodeRow("/a", b"", 0),
    NodeRow("/a/b", b"\0\xff value", 3),
    NodeRow("/ä", b"x" * 3000, 2**40),
)
Place = tuple[MetadataMedia, str]


PATH = f"/d/{JournalMedia.file_name}"


@pytest.fixture
def fs() -> FaultyFileSystem:
    made = FaultyFileSystem()
    made.make_dirs("/d")
    return made


@pytest.fixture(params=["sqlite", "journal"])
def place(request: pytest.FixtureRequest, tmp_path: Path, fs: FaultyFileSystem) -> Place:
    if request.param == "sqlite":
        return SqliteMedia(), str(tmp_path / SqliteMedia.file_name)
    return JournalMedia(fs), PATH


def test_rows_are_there_after_it_was_closed_and_opened(place: Place) -> None:
    media, path = place
    medium = media.open(path)
    assert (medium.fresh, medium.load(), medium.path) == (True, [], path)
    medium.write([A, B, C], [])
    medium.write([B._replace(version=4)], ["/ä", "/never-there"])
    medium.close()
    medium.close()
    again = media.open(path)
    assert not again.fresh
    assert sorted(again.load()) == [A, B._replace(version=4)]
    again.close()


def test_a_closed_one_takes_nothing(place: Place) -> None:
    media, path = place
    medium = media.open(path)
    medium.close()
    with pytest.raises(MediumFailed):
        medium.write([A], [])


def test_a_directory_that_is_missing_is_not_made(place: Place) -> None:
    media, path = place
    with pytest.raises(MediumError):
        media.open(path + "/missing/file")


def test_a_transient_one_forgets() -> None:
    medium = TransientMedium()
    medium.write([A], [])
    assert (medium.fresh, medium.load()) == (True, [])
    medium.close()


def test_a_layout_of_the_future_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "newer")
    SqliteMedia().open(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=9")
    database.close()
    with pytest.raises(MediumError, match="layout 9"):
        SqliteMedia().open(path)


_WRITER = """
import os, signal, sys
from broker.world.metadata_medium import NodeRow
from broker.world.sqlite_medium import SqliteMedia
medium = SqliteMedia().open(sys.argv[1])
for n in range(1000):
    medium.write([NodeRow(f"/n/{n}", b"x" * 100, 0)], [])
    if n == 20:
        print("ready", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_sqlite_has_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sqlite")
    process = subprocess.run(
        [sys.executable, "-c", _WRITER, path], capture_output=True, text=True, check=False
    )
    assert process.stdout == "ready\n", process.stderr
    with closing(SqliteMedia().open(path)) as medium:
        rows = medium.load()
    assert {row.path for row in rows} == {f"/n/{n}" for n in range(21)}


# ---- the journal on disks that fail


def test_a_power_loss_takes_nothing_that_was_acknowledged_and_half_of_nothing(
    fs: FaultyFileSystem,
) -> None:
    medium = JournalMedia(fs).open(PATH)
    medium.write([A, B], [])
    after = fs.crash(forget_names=True)
    assert sorted(JournalMedia(after).open(PATH).load()) == [A, B]
    durable = fs.read_bytes(PATH)
    medium.write([C], ["/a/b"])
    longer = fs.read_bytes(PATH)
    for size in range(len(durable), len(longer) + 1):
        torn = FaultyFileSystem()
        torn.write_bytes(PATH, longer[:size])
        opened = JournalMedia(torn).open(PATH)
        assert sorted(opened.load()) == ([A, C] if size == len(longer) else [A, B])
        opened.write([B], [])
        assert sorted(JournalMedia(torn).open(PATH).load())[:2] == [A, B]


@pytest.mark.parametrize("operation", ["pwrite", "fsync"])
def test_a_write_that_failed_is_as_if_it_had_never_been(
    fs: FaultyFileSystem, operation: str
) -> None:
    medium = JournalMedia(fs).open(PATH)
    medium.write([A], [])
    fs.fail(operation, PATH, partial=40)
    with pytest.raises(MediumFailed):
        medium.write([B], ["/a"])
    medium.write([C], [])
    assert sorted(JournalMedia(fs).open(PATH).load()) == [A, C]


def test_a_journal_that_repeats_itself_is_rewritten_when_it_is_opened(
    fs: FaultyFileSystem,
) -> None:
    medium = JournalMedia(fs).open(PATH)
    for version in range(1000):
        medium.write([B._replace(version=version)], [])
    long = fs.size(PATH)
    again = JournalMedia(fs).open(PATH)
    assert again.load() == [B._replace(version=999)]
    assert not again.fresh
    assert fs.size(PATH) < long / 100
    again.write([A], [])
    assert len(JournalMedia(fs).open(PATH).load()) == 2


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:20], lambda data: b"", lambda data: b"\0" * len(data)]
)
def test_a_journal_whose_making_was_interrupted_is_begun_again(
    fs: FaultyFileSystem, spoil: Callable[[bytes], bytes]
) -> None:
    JournalMedia(fs).open(PATH)
    fs.write_bytes(PATH, spoil(fs.read_bytes(PATH)))
    medium = JournalMedia(fs).open(PATH)
    assert medium.fresh
    medium.write([A], [])
    assert JournalMedia(fs).open(PATH).load() == [A]


def test_a_journal_of_the_future_is_refused(fs: FaultyFileSystem) -> None:
    JournalMedia(fs).open(PATH)
    from broker.world.journal_medium import _line

    fs.write_bytes(PATH, _line({"layout": 7}))
    with pytest.raises(MediumError, match="layout 7"):
        JournalMedia(fs).open(PATH)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    path.write_bytes(b"garbage!" * 512)
    with pytest.raises(MediumError) as caught:
        SqliteMedia().open(str(path))
    for hint in ("Put a copy of it back", "move it aside", "pykafkalog adopt"):
        assert hint in caught.value.reason


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def beside(path: Path) -> list[Path]:
    return [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")]


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_and_those_beside_it_are_their_owner_s_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metadata.sqlite"
    for rows in ([A], [B]):
        with closing(SqliteMedia().open(str(path))) as medium:
            medium.write(rows, [])
            assert [mode(file) for file in beside(path)] == [0o600] * 3
    assert not caplog.records


@pytest.mark.parametrize("kept", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_keeps_its_mode_and_is_warned_of(
    kept: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metadata.sqlite"
    SqliteMedia().open(str(path)).close()
    path.chmod(kept)
    assert not caplog.records
    SqliteMedia().open(str(path)).close()
    assert mode(path) == kept
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"Others than the owner can read {path}, which holds keys of users and passwords that were"
        f" set while the broker ran. To end that: chmod go= {path}"
    )


def test_files_that_a_crash_left_beside_it_count_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, log, index = beside(tmp_path / "metadata.sqlite")
    with closing(SqliteMedia().open(str(path))):
        log.chmod(0o644)
        index.chmod(0o644)
        SqliteMedia().open(str(path)).close()
    [record] = caplog.records
    assert record.getMessage().endswith(f"chmod go= {log} {index}")


@pytest.mark.parametrize("kept", [0o600, 0o622, 0o611])
def test_a_file_that_others_cannot_read_is_no_warning(
    kept: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metadata.sqlite"
    path.touch()
    path.chmod(kept)
    with closing(SqliteMedia().open(str(path))):
        assert not caplog.records


def test_a_file_that_cannot_be_made_is_told_with_the_system_s_reason(tmp_path: Path) -> None:
    with pytest.raises(MediumError, match="cannot be opened: No such file or directory"):
        SqliteMedia().open(str(tmp_path / "missing" / "metadata.sqlite"))
