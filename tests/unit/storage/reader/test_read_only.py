"""The reader takes the parts of a file that it needs off the disk, and no more."""

import os
from pathlib import Path

import pytest

from storage.errors import CorruptIndex
from storage.os_filesystem import OsFileSystem
from storage.reader.arrow.metering import MeteredFileSystem
from storage.reader.partition import PartitionView
from storage.reader.read_only import ReadOnlyFileSystem
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder

PRE_SIZED = 10 * 1024 * 1024


@pytest.mark.parametrize("batches", [0, 1, 2, 400])
def test_the_entries_of_a_pre_sized_index_are_read(batches: int) -> None:
    builder = LogBuilder(index_interval_bytes=0, segment_index_bytes=PRE_SIZED)
    for number in range(batches):
        builder.append_dated(1_000 + number)
    if batches:
        at_once(builder.log.flush())
    fs = MeteredFileSystem(builder.fs)
    segment = PartitionView(DIRECTORY, fs).segment(0)
    if batches > 1:
        assert fs.size(segment.offset_index_path) > PRE_SIZED - 12
        assert fs.size(segment.time_index_path) > PRE_SIZED - 12
    entries = len(segment.offset_index_columns()["offset"])
    dated = len(segment.time_index_columns()["timestamp"])
    assert entries == max(batches - 1, 0)
    # Beside the entries, a search for the last one: single entries of 8 and 12 bytes.
    assert fs.bytes_read <= entries * 8 + dated * 12 + 2 * 25 * 12


def test_a_mapping_outlives_its_file_and_ends_with_its_last_reference(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"data" + bytes(96))
    before = len(os.listdir("/proc/self/fd"))
    file = ReadOnlyFileSystem(OsFileSystem()).open(str(path), writable=False)
    mapping = file.map(100)
    file.close()
    path.unlink()
    assert (mapping[0:4], mapping[2:6], mapping[4:4], len(mapping)) == (
        b"data",
        b"ta\0\0",
        b"",
        100,
    )
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file, mapping
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(("left", "is_cut"), [(4, False), (3, True), (0, True)])
def test_an_index_that_is_cut_while_it_is_read_is_corrupt(left: int, is_cut: bool) -> None:
    builder = LogBuilder(index_interval_bytes=0)
    for _ in range(5):
        builder.append()
    at_once(builder.log.flush())
    segment = PartitionView(DIRECTORY, builder.fs).segment(0)
    index = segment._offset_index()
    assert index.entries == 4
    file = builder.fs.open(segment.offset_index_path)
    file.truncate(left * 8)
    if is_cut:
        with pytest.raises(CorruptIndex):
            index.as_array()
    else:
        assert len(index.as_array()) == 4
