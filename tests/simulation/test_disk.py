"""The simulated disk: synced bytes stay, unsynced ones may go, dead brokers write no more."""

from collections import Counter
from random import Random

import pytest

from tests.simulation.disk import SimulatedDisk

PATH = "/d/f"


@pytest.fixture
def disk() -> SimulatedDisk:
    made = SimulatedDisk(lambda: 1_700_000_000_000, Random(1))
    made.make_dirs("/d")
    made.fsync_dir("/")
    return made


def left(disk: SimulatedDisk, seed: int) -> bytes | None:
    """Return the file after a power loss, None if it is gone. The disk stays usable."""
    after = SimulatedDisk(disk._now_ms, Random(1))
    failure = disk.failure
    after = disk.after_power_loss(Random(seed))
    disk.failure = failure
    return after.read_bytes(PATH) if after.exists(PATH) else None


def test_bytes_that_were_synced_with_their_name_stay(disk: SimulatedDisk) -> None:
    file = disk.open(PATH, create=True)
    file.pwrite(b"synced", 0)
    file.fsync()
    disk.fsync_dir("/d")
    assert {left(disk, seed) for seed in range(50)} == {b"synced"}


def test_a_name_that_was_not_synced_may_be_gone(disk: SimulatedDisk) -> None:
    file = disk.open(PATH, create=True)
    file.pwrite(b"synced", 0)
    file.fsync()
    assert {left(disk, seed) for seed in range(50)} == {b"synced", None}


def test_unsynced_bytes_may_be_there_in_part(disk: SimulatedDisk) -> None:
    file = disk.open(PATH, create=True)
    file.pwrite(b"1" * 600, 0)
    file.fsync()
    disk.fsync_dir("/d")
    file.pwrite(b"2" * 600, 600)
    found = Counter(len((left(disk, seed) or b"").rstrip(b"\0")) for seed in range(300))
    assert min(found) == 600 and max(found) == 1200 and len(found) > 10
    assert all((left(disk, seed) or b"").startswith(b"1" * 600) for seed in range(300))


def test_a_rename_is_there_as_a_whole_or_not_at_all(disk: SimulatedDisk) -> None:
    for name in ("old", "new"):
        file = disk.open(f"/d/{name}", create=True)
        file.pwrite(name.encode(), 0)
        file.fsync()
    disk.fsync_dir("/d")
    disk.rename("/d/new", "/d/old")
    states = set()
    for seed in range(50):
        after = disk.after_power_loss(Random(seed))
        states.add(tuple((name, after.read_bytes(f"/d/{name}")) for name in after.list_dir("/d")))
    assert states == {(("old", b"new"),), (("new", b"new"), ("old", b"old"))}


def test_a_directory_that_was_renamed_keeps_its_files(disk: SimulatedDisk) -> None:
    disk.make_dirs("/d/t-0")
    file = disk.open("/d/t-0/x", create=True)
    file.pwrite(b"x", 0)
    file.fsync()
    disk.fsync_dir("/d/t-0")
    disk.fsync_dir("/d")
    disk.rename("/d/t-0", "/d/t-0.delete")
    names = {tuple(disk.after_power_loss(Random(seed)).list_dir("/d")) for seed in range(50)}
    assert names == {("t-0",), ("t-0.delete",)}
    disk.failure = None
    disk.remove_tree("/d/t-0.delete")
    assert disk.list_dir("/d") == []


def test_after_a_kill_everything_is_there_and_the_dead_can_do_nothing(
    disk: SimulatedDisk,
) -> None:
    file = disk.open(PATH, create=True)
    file.pwrite(b"abcd", 0)
    mapping = file.map(4)
    assert disk.lock("/d/.lock") is not None
    after = disk.after_kill()
    assert mapping[:] == b"abcd"
    with pytest.raises(OSError, match="shutdown"):
        file.pwrite(b"dead", 0)
    with pytest.raises(OSError, match="shutdown"):
        disk.open(PATH)
    assert after.read_bytes(PATH)[:4] == b"abcd"
    assert after.lock("/d/.lock") is not None
    # The page cache still owed it to the disk.
    assert {(left(after, seed) or b"")[:4] for seed in range(50)} >= {b"abcd", b""}


def test_a_write_that_fails_may_have_put_down_a_part(disk: SimulatedDisk) -> None:
    file = disk.open(PATH, create=True)
    sizes = set()
    for _ in range(50):
        disk.failure = lambda operation, path: OSError(28, "full")
        with pytest.raises(OSError, match="full"):
            file.pwrite(b"x" * 100, 0)
        disk.failure = None
        sizes.add(file.size())
        file.truncate(0)
    assert len(sizes) > 10
