"""The recovery point follows the syncs and never leads them."""

import errno

import pytest

from storage.errors import StorageError
from tests.support.log_builder import DIRECTORY, LogBuilder


def test_s_fl_2_the_recovery_point_moves_only_after_the_sync() -> None:
    built = LogBuilder(segment_bytes=300)
    for _ in range(10):
        built.append()
    log = built.log
    assert log.segment_count > 2
    assert log.recovery_point == 0
    built.fs.fail("fsync", "*.log", nth=2, errno=errno.EIO)
    with pytest.raises(StorageError):
        log.flush()
    assert log.recovery_point == 0
    built.fs.heal()
    second = log.segments.base_offsets[1]
    log = built.killed()
    log.flush(second)
    assert log.recovery_point == second
    log.flush()
    assert log.recovery_point == 10
    after = built.fs.crash(forget_names=True)
    assert [n for n in after.list_dir(DIRECTORY) if n.endswith(".log")] == [
        f"{base:020d}.log" for base in log.segments.base_offsets
    ]
    assert sum(
        after.size(f"{DIRECTORY}/{base:020d}.log") for base in log.segments.base_offsets
    ) == (log.size)


def test_s_fl_2_a_truncation_takes_the_recovery_point_back() -> None:
    built = LogBuilder()
    for _ in range(6):
        built.append()
    built.log.flush()
    built.log.truncate_to(4)
    assert built.log.recovery_point == 4


def test_a_flush_syncs_what_an_earlier_process_wrote() -> None:
    built = LogBuilder()
    for _ in range(3):
        built.append()
    log = built.killed()  # the page cache has it, the disk has not
    log.flush()
    built.fs = built.fs.crash()
    assert built.open(clean=False, recovery_point=3).log_end_offset == 3
