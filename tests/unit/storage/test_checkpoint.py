"""Offset checkpoints: Kafka's bytes, atomic replacement, and what happens to damaged files."""

from pathlib import Path

import pytest

from protocol.types import TopicPartition
from storage.checkpoint import OffsetCheckpoint
from storage.errors import CheckpointError
from tests.support.faulty_filesystem import FaultyFileSystem

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "storage"
PATH = "/d/recovery-point-offset-checkpoint"
OFFSETS = {TopicPartition("a.b-c", 0): 0, TopicPartition("topic", 17): 9007199254740993}


def test_bytes_are_those_of_kafka(fs: FaultyFileSystem) -> None:
    OffsetCheckpoint(fs, PATH).write(OFFSETS)
    golden = (GOLDEN / "recovery-point-offset-checkpoint").read_bytes()
    assert fs.read_bytes(PATH) == golden
    assert OffsetCheckpoint(fs, PATH).read() == OFFSETS


@pytest.mark.parametrize("content", [None, b"", b"0\n", b"0", b"0\n0\n"])
def test_absent_and_empty_files_read_as_empty(fs: FaultyFileSystem, content: bytes | None) -> None:
    if content is not None:
        fs.write_bytes(PATH, content)
    assert OffsetCheckpoint(fs, PATH).read() == {}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"1\n1\nt 0 5\n", 1),
        (b"x\n", 1),
        (b"\0\0\0\0", 1),
        (b"0\nmany\n", 2),
        (b"0\n2\nt 0 5\n", 2),
        (b"0\n1\nt 0 5\nt 1 6\n", 2),
        (b"0\n1\nt 0\n", 3),
        (b"0\n2\nt 0 5\nt one 6\n", 4),
        (b"0\n1\nt 0 5 6\n", 3),
        (b"0\n1\nt 2147483648 5\n", 3),
        (b"0\n1\nt 0 9223372036854775808\n", 3),
        (b"0\n1\nt 0 -9223372036854775809\n", 3),
        (b"0\n1\n\n", 3),
        (b"0\n1\n\xff 0 5\n", 0),
    ],
)
def test_s_fl_3_malformed_files_name_file_and_line(
    fs: FaultyFileSystem, content: bytes, line: int
) -> None:
    fs.write_bytes(PATH, content)
    with pytest.raises(CheckpointError) as caught:
        OffsetCheckpoint(fs, PATH).read()
    assert caught.value.path == PATH
    assert caught.value.line == line
    assert PATH in str(caught.value)


def test_s_fl_3_writing_is_temporary_file_sync_rename_sync(fs: FaultyFileSystem) -> None:
    fs.operations.clear()
    OffsetCheckpoint(fs, PATH).write(OFFSETS)
    steps = [operation for operation, _ in fs.operations]
    order = ["pwritev", "fsync", "rename", "fsync_dir"]
    assert [step for step in steps if step in order] == order


@pytest.mark.parametrize("step", ["open", "pwritev", "fsync", "rename", "fsync_dir"])
def test_s_fl_3_a_failed_write_leaves_a_whole_file(fs: FaultyFileSystem, step: str) -> None:
    checkpoint = OffsetCheckpoint(fs, PATH)
    checkpoint.write({TopicPartition("t", 0): 1})
    fs.fail(step)
    with pytest.raises(OSError):
        checkpoint.write({TopicPartition("t", 0): 2})
    for after in (fs.crash(), fs.crash(forget_names=True), fs.crash(keep_unsynced=True)):
        offset = OffsetCheckpoint(after, PATH).read()[TopicPartition("t", 0)]
        assert offset in ({1, 2} if step == "fsync_dir" else {1})


def test_text_cut_anywhere_never_reads_as_something_else(fs: FaultyFileSystem) -> None:
    OffsetCheckpoint(fs, PATH).write(OFFSETS)
    whole = fs.read_bytes(PATH)
    last_number = whole.rindex(b" ")
    for end in range(len(whole)):
        fs.write_bytes(PATH, whole[:end])
        try:
            read = OffsetCheckpoint(fs, PATH).read()
        except CheckpointError:
            continue
        # The format itself cannot tell a number that lost its last digits; nothing else passes.
        assert read in ({}, OFFSETS) or end > last_number


def test_the_largest_numbers_of_kafka_are_read(fs: FaultyFileSystem) -> None:
    fs.write_bytes(PATH, b"0\n1\nt 2147483647 9223372036854775807\n")
    assert OffsetCheckpoint(fs, PATH).read() == {TopicPartition("t", 2**31 - 1): 2**63 - 1}
