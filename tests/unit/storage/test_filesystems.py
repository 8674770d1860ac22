"""One contract: the real file system, the one in memory and its unreliable twin must agree."""

import errno
import fcntl
import mmap
import os
import pickle
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import memory_filesystem
from storage.filesystem import FileSystem
from storage.log.results import FileSlice
from storage.os_filesystem import OsFile, OsFileSystem
from tests.support.faulty_filesystem import FaultyFileSystem

Place = tuple[FileSystem, str]


@pytest.fixture(params=["os", "memory", "relative", "unreliable"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "os":
        return OsFileSystem(), str(tmp_path)
    reliable = memory_filesystem.MemoryFileSystem(lambda: 1_700_000_000_000)
    memory = FaultyFileSystem() if request.param == "unreliable" else reliable
    root = "memory:" if request.param == "relative" else "/disk"
    memory.make_dirs(root)
    return memory, root


def test_what_is_written_at_a_position_is_read_there(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(b"hello", 3)
    file.pwritev([b"wo", bytearray(b"rl"), memoryview(b"d")], 8)
    assert file.size() == 13
    assert file.pread(100, 0) == b"\0\0\0helloworld"
    assert file.pread(2, 3) == b"he"
    assert file.pread(5, 13) == b""
    file.truncate(4)
    file.truncate(6)
    assert fs.read_bytes(f"{root}/f") == b"\0\0\0h\0\0"
    assert fs.size(f"{root}/f") == 6
    assert file.path == f"{root}/f"


def test_what_was_just_written_is_cached(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(bytes(200_000), 0)
    assert file.is_cached(200_000, 0)
    assert file.is_cached(0, 0)
    assert file.is_cached(1, 1 << 40), "nothing to wait for behind the end"


@pytest.mark.parametrize(
    ("size", "cold_at", "cached"),
    [(65_535, 0, True), (65_536, 0, False), (65_536, 65_535, False), (1, 0, False)],
)
def test_a_range_is_cached_when_its_ends_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, cold_at: int, cached: bool
) -> None:
    def preadv(fd: int, buffers: list[bytearray], position: int, flags: int) -> int:
        assert flags == os.RWF_NOWAIT
        if position == 1000 + cold_at:
            raise BlockingIOError
        return 1

    file = OsFileSystem().open(f"{tmp_path}/f", create=True)
    monkeypatch.setattr(os, "preadv", preadv)
    assert file.is_cached(size, 1000) is cached


def test_a_file_system_that_cannot_say_is_taken_as_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preadv(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not here")

    file = OsFileSystem().open(f"{tmp_path}/f", create=True)
    monkeypatch.setattr(os, "preadv", preadv)
    assert file.is_cached(100, 0)


def test_a_slice_is_loaded_as_far_as_the_file_goes(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    content = bytes(range(256)) * 4000
    file.pwrite(content, 0)
    piece = FileSlice(file, 10, 2_000_000)
    piece.load()
    assert piece.is_cached()
    assert piece.read() == content[10:]


def test_more_pieces_than_one_system_call_takes(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    pieces: list[bytes | bytearray | memoryview] = [bytes([n % 251]) for n in range(3000)]
    file.pwritev(pieces, 1)
    assert file.pread(4000, 1) == b"".join(pieces)


def test_a_mapping_shows_the_bytes_of_the_file(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(bytes(100_000), 0)
    mapping = file.map(90_000)
    file.close()
    again = fs.open(f"{root}/f")
    again.pwrite(b"abc", 5)
    assert mapping[4:9] == b"\0abc\0"
    assert (len(mapping), mapping.size()) == (90_000, 100_000)
    again.truncate(80_000)
    assert (len(mapping), mapping.size()) == (90_000, 80_000)
    assert mapping[79_999:80_000] == b"\0"


def test_s_ret_7_an_open_file_and_a_mapping_survive_deletion_and_rename(place: Place) -> None:
    fs, root = place
    file = fs.open(f"{root}/f", create=True)
    file.pwrite(b"data", 0)
    mapping = file.map(4)
    fs.rename(f"{root}/f", f"{root}/f.deleted")
    fs.unlink(f"{root}/f.deleted")
    assert not fs.exists(f"{root}/f.deleted")
    assert file.pread(4, 0) == b"data"
    file.close()
    file.close()
    assert (mapping[:], mapping.size()) == (b"data", 4)


def test_directories_list_move_and_go_as_a_whole(place: Place) -> None:
    fs, root = place
    fs.make_dirs(f"{root}/a/b")
    fs.make_dirs(f"{root}/a/b")
    fs.open(f"{root}/a/b/f", create=True).close()
    fs.open(f"{root}/a/z", create=True).close()
    assert fs.list_dir(f"{root}/a") == ["b", "z"]
    assert fs.sizes(f"{root}/a") == {"z": 0}
    assert fs.is_dir(f"{root}/a/b")
    assert not fs.is_dir(f"{root}/a/z")
    fs.rename(f"{root}/a", f"{root}/c")
    assert fs.list_dir(f"{root}/c/b") == ["f"]
    assert not fs.exists(f"{root}/a")
    fs.remove_tree(f"{root}/c")
    assert fs.list_dir(root) == []


@pytest.mark.parametrize(
    "action",
    [
        lambda fs, path: fs.open(path),
        lambda fs, path: fs.open(path + "/x", create=True),
        lambda fs, path: fs.read_bytes(path),
        lambda fs, path: fs.unlink(path),
        lambda fs, path: fs.rename(path, path + "2"),
        lambda fs, path: fs.list_dir(path),
        lambda fs, path: fs.size(path),
        lambda fs, path: fs.mtime_ms(path),
        lambda fs, path: fs.remove_tree(path),
        lambda fs, path: fs.fsync_dir(path),
        lambda fs, path: fs.write_atomic(path + "/x", (b"",)),
    ],
)
def test_what_is_missing_is_a_file_not_found_error(
    place: Place, action: Callable[[FileSystem, str], object]
) -> None:
    fs, root = place
    with pytest.raises(FileNotFoundError):
        action(fs, f"{root}/missing")


def test_unlinking_what_may_be_missing(place: Place) -> None:
    fs, root = place
    fs.unlink(f"{root}/missing", missing_ok=True)


def test_a_file_opened_for_reading_cannot_be_written(place: Place) -> None:
    fs, root = place
    fs.open(f"{root}/f", create=True).close()
    with pytest.raises(OSError) as caught:
        fs.open(f"{root}/f", writable=False).pwrite(b"x", 0)
    assert caught.value.errno == errno.EBADF


def test_atomic_write_replaces_and_ignores_a_left_over_temporary_file(place: Place) -> None:
    fs, root = place
    fs.open(f"{root}/f.tmp", create=True).pwrite(b"x" * 100, 0)
    fs.write_atomic(f"{root}/f", [b"one ", b"two"])
    assert fs.read_bytes(f"{root}/f") == b"one two"
    fs.write_atomic(f"{root}/f", (piece for piece in (b"3",)))
    assert fs.read_bytes(f"{root}/f") == b"3"
    assert fs.list_dir(root) == ["f"]


def test_s_rec_7_a_lock_excludes_a_second_owner_until_it_is_closed(place: Place) -> None:
    fs, root = place
    first = fs.lock(f"{root}/.lock")
    assert first is not None
    assert fs.lock(f"{root}/.lock") is None
    first.close()
    assert fs.lock(f"{root}/.lock") is not None


def test_s_rec_7_a_removed_lock_file_lets_no_second_owner_in(place: Place) -> None:
    fs, root = place
    first = fs.lock(f"{root}/.lock")
    assert first is not None
    fs.unlink(f"{root}/.lock")
    for _ in range(2):  # the refused one leaves nothing locked
        assert fs.lock(f"{root}/.lock") is None
    first.close()
    second = fs.lock(f"{root}/.lock")
    assert second is not None
    second.close()


def test_a_directory_that_cannot_be_locked_is_kept_by_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def as_on_nfs(file: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    fs = OsFileSystem()
    first = fs.lock(f"{tmp_path}/.lock")
    assert first is not None
    assert fs.lock(f"{tmp_path}/.lock") is None
    first.close()


def test_modification_time_can_be_set(place: Place) -> None:
    fs, root = place
    fs.open(f"{root}/f", create=True).close()
    fs.set_mtime_ms(f"{root}/f", 1_600_000_000_123)
    assert fs.mtime_ms(f"{root}/f") == 1_600_000_000_123


def test_usage_of_the_volume(place: Place) -> None:
    fs, root = place
    total, usable = fs.usage(root)
    assert 0 < usable <= total


# --- only the real one


def test_descriptor_is_closed_with_the_last_reference(tmp_path: Path) -> None:
    file = OsFileSystem().open(str(tmp_path / "f"), create=True)
    descriptor = file.fileno()
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_short_writes_and_reads_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite, real_pwritev, real_pread = os.pwrite, os.pwritev, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real_pwrite(fd, bytes(data[:3]), at))
    monkeypatch.setattr(
        os, "pwritev", lambda fd, data, at: real_pwritev(fd, [b"".join(data)[:5]], at)
    )
    monkeypatch.setattr(os, "pread", lambda fd, size, at: real_pread(fd, min(size, 2), at))
    file = OsFileSystem().open(str(tmp_path / "f"), create=True)
    file.pwrite(b"0123456789", 0)
    file.pwritev([b"abcd", b"efgh", b"ijkl"], 10)
    assert file.pread(100, 0) == b"0123456789abcdefghijkl"


def test_a_mapping_is_backed_by_a_real_mmap(tmp_path: Path) -> None:
    file = OsFileSystem().open(str(tmp_path / "f"), create=True)
    assert isinstance(file, OsFile)
    file.truncate(10)
    assert isinstance(file.map(10), mmap.mmap)


# --- only the twin


def test_touching_what_was_cut_under_a_mapping_is_told(fs: FaultyFileSystem) -> None:
    file = fs.open("/d/f", create=True)
    file.pwrite(bytes(100), 0)
    mapping = file.map(100)
    file.truncate(50)
    with pytest.raises(BufferError, match="was cut"):
        mapping[40:60]


def test_crash_forgets_what_was_not_synced(fs: FaultyFileSystem) -> None:
    file = fs.open("/d/f", create=True)
    file.pwrite(b"safe", 0)
    file.fsync()
    file.pwrite(b"lost", 2)
    assert fs.crash().read_bytes("/d/f") == b"safe"
    assert fs.crash(keep_unsynced=True).read_bytes("/d/f") == b"salost"
    torn = fs.crash(tear=lambda path, durable, current: current[: len(durable) + 1])
    assert torn.read_bytes("/d/f") == b"salos"


def test_crash_may_forget_names_that_were_not_synced(fs: FaultyFileSystem) -> None:
    fs.write_atomic("/d/kept", (b"1",))
    fs.open("/d/new", create=True).fsync()
    fs.rename("/d/kept", "/d/renamed")
    assert fs.crash(forget_names=True).list_dir("/d") == ["kept"]
    assert fs.crash().list_dir("/d") == ["new", "renamed"]


@pytest.mark.parametrize("step", ["pwritev", "fsync", "rename"])
def test_atomic_write_that_fails_leaves_the_old_content(fs: FaultyFileSystem, step: str) -> None:
    fs.write_atomic("/d/f", (b"old",))
    fs.fail(step)
    with pytest.raises(OSError):
        fs.write_atomic("/d/f", (b"new",))
    assert fs.read_bytes("/d/f") == b"old"
    assert fs.crash().read_bytes("/d/f") == b"old"


def test_big_sparse_files_do_not_fill_memory_and_read_as_zeros(fs: FaultyFileSystem) -> None:
    files = [fs.open(f"/d/{n}", create=True) for n in range(200)]
    for file in files:
        file.truncate(10 * 1024 * 1024)
    assert files[7].pread(10, 10 * 1024 * 1024 - 5) == bytes(5)


# Descriptors that are held back.


def crowded(limit_above: int) -> tuple[list[int], Callable[[], None]]:
    """Takes every descriptor that this process may have, after lowering what that is."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.open(os.devnull, os.O_RDONLY)
    os.close(highest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + limit_above, before[1]))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass

    def give_back() -> None:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    return taken, give_back


def test_files_can_be_opened_when_no_descriptor_is_left(tmp_path: Path) -> None:
    plain, spared = OsFileSystem(), OsFileSystem(spares=2)
    path = str(tmp_path / "f")
    _, give_back = crowded(8)
    try:
        with pytest.raises(OSError, match="Too many open files"):
            plain.open(path, create=True)
        file = spared.open(path, create=True)
        file.pwrite(b"x" * 4096, 0)
        assert spared.read_bytes(path) == b"x" * 4096
        spared.fsync_dir(str(tmp_path))
        assert spared.list_dir(str(tmp_path)) == ["f"]
        spared.write_atomic(str(tmp_path / "g"), [b"g"])
        mapped = file.map(4096)
        with pytest.raises(OSError, match="Too many open files"):
            spared.open(path)
        file.close()  # a spare one again
        again = spared.open(path)
        assert (mapped[:1], again.size()) == (b"x", 4096)
        again.close()
    finally:
        give_back()


def test_a_copy_for_another_process_holds_no_descriptor_back() -> None:
    spared = OsFileSystem(spares=2)
    before = os.listdir("/proc/self/fd")
    copy = pickle.loads(pickle.dumps(spared))
    assert copy.list_dir("/") == spared.list_dir("/")
    del copy
    assert os.listdir("/proc/self/fd") == before
