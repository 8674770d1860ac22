"""Leader epochs: what `test_kafka_scripts` does not reach, and what is durable when."""

from random import Random

import pytest

from storage.epochs import EpochEntry, LeaderEpochCache
from storage.errors import CheckpointError
from tests.support.faulty_filesystem import FaultyFileSystem

PATH = "/d/leader-epoch-checkpoint"


@pytest.fixture
def cache(fs: FaultyFileSystem) -> LeaderEpochCache:
    cache = LeaderEpochCache(fs, PATH, Random(1))
    for epoch, start in ((2, 10), (4, 20), (7, 50)):
        assert cache.assign(epoch, start)
    return cache


def starts(cache: LeaderEpochCache) -> list[tuple[int, int]]:
    cache._check()
    return [tuple(entry) for entry in cache.entries]


def test_s_read_12_the_latest_epoch_ends_with_the_log(cache: LeaderEpochCache) -> None:
    assert cache.end_offset_for(7, 999) == (7, 999)
    assert cache.epoch_for_offset(10**9) == 7
    assert cache.earliest_entry == EpochEntry(2, 10)


def test_s_rec_6_a_truncation_says_whether_it_dropped_an_entry(cache: LeaderEpochCache) -> None:
    assert not cache.truncate_from_end(51)
    assert not cache.truncate_from_end(-1)
    assert not cache.truncate_from_start(10)
    assert starts(cache) == [(2, 10), (4, 20), (7, 50)]
    assert cache.truncate_from_end(50)
    assert cache.truncate_from_start(20)
    assert starts(cache) == [(4, 20)]
    assert cache.truncate_from_end(20)
    assert starts(cache) == []


@pytest.mark.parametrize(("epoch", "start"), [(-1, 5), (5, -1)])
def test_an_epoch_or_offset_below_zero_is_refused(
    cache: LeaderEpochCache, epoch: int, start: int
) -> None:
    with pytest.raises(ValueError, match="invalid leader epoch"):
        cache.assign(epoch, start)


def test_s_read_12_without_epochs_everything_is_undefined(fs: FaultyFileSystem) -> None:
    cache = LeaderEpochCache(fs, PATH, Random(1))
    assert cache.is_empty
    assert cache.end_offset_for(0, 5) == (-1, -1)
    assert cache.latest_epoch is None
    assert cache.earliest_entry is None
    assert cache.epoch_for_offset(3) is None
    assert not fs.exists(PATH)


def test_assigning_what_is_known_writes_nothing(
    fs: FaultyFileSystem, cache: LeaderEpochCache
) -> None:
    fs.operations.clear()
    assert not cache.assign(7, 50)
    assert not cache.assign(7, 80)
    assert fs.operations == []


def test_a_new_epoch_is_durable_when_flushed_and_no_append_waits_for_it(
    fs: FaultyFileSystem,
) -> None:
    cache = LeaderEpochCache(fs, PATH, Random(1))
    fs.operations.clear()
    cache.assign(3, 5)
    assert fs.operations == []
    cache.flush()
    after = LeaderEpochCache(fs.crash(forget_names=True), PATH, Random(1))
    assert starts(after) == [(3, 5)]


def test_truncation_is_written_by_flush(fs: FaultyFileSystem, cache: LeaderEpochCache) -> None:
    cache.flush()
    cache.truncate_from_end(50)
    assert len(LeaderEpochCache(fs, PATH, Random(1)).entries) == 3
    assert cache.begin_flush() is not None
    cache.flush()
    assert cache.begin_flush() is None
    assert starts(LeaderEpochCache(fs, PATH, Random(1))) == [(2, 10), (4, 20)]
    fs.operations.clear()
    cache.flush()
    assert fs.operations == []
    cache.clear()
    cache.flush()
    assert fs.read_bytes(PATH) == b"0\n0\n"
    cache.update_parent_dir("/q")
    assert cache.path == "/q/leader-epoch-checkpoint"


@pytest.mark.parametrize(
    "content",
    [
        b"0\n1\n1 2 3\n",
        b"0\n1\na b\n",
        b"0\n2\n1 2\n",
        b"9\n",
        b"0\n1\n2147483648 0\n",
        b"0\n1\n0 9223372036854775808\n",
    ],
)
def test_a_damaged_file_is_reported(fs: FaultyFileSystem, content: bytes) -> None:
    fs.write_bytes(PATH, content)
    with pytest.raises(CheckpointError, match="leader-epoch-checkpoint"):
        LeaderEpochCache(fs, PATH, Random(1))


def test_non_monotonic_entries_of_a_file_are_dropped(fs: FaultyFileSystem) -> None:
    fs.write_bytes(PATH, b"0\n3\n1 10\n2 20\n3 15\n")
    cache = LeaderEpochCache(fs, PATH, Random(1))
    assert starts(cache) == [(1, 10), (3, 15)]
    assert cache.begin_flush() is None
