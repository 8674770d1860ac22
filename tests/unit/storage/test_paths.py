"""Names on disk, written and read back."""

import pytest

from protocol.types import TopicPartition
from storage.paths import (
    DirState,
    PartitionDir,
    SegmentFile,
    file_name,
    index_file,
    log_file,
    parent_dir,
    parse_partition_dir,
    parse_segment_file,
    partition_dir_name,
    snapshot_file,
    state_dir_name,
    time_index_file,
    txn_index_file,
)

HEX = "0123456789abcdef" * 2


def test_segment_files_are_named_by_twenty_digits() -> None:
    assert log_file("/d", 42) == "/d/00000000000000000042.log"
    assert index_file("/d", 0, ".cleaned") == "/d/00000000000000000000.index.cleaned"
    assert time_index_file("/d", 1) == "/d/00000000000000000001.timeindex"
    assert txn_index_file("/d", 1, ".swap") == "/d/00000000000000000001.txnindex.swap"
    assert snapshot_file("/d", 2**63 - 1) == "/d/09223372036854775807.snapshot"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042.log", SegmentFile(42, ".log", "")),
        ("00000000000000000042.timeindex.swap", SegmentFile(42, ".timeindex", ".swap")),
        ("00000000000000000042.snapshot.deleted", SegmentFile(42, ".snapshot", ".deleted")),
        ("leader-epoch-checkpoint", None),
        ("leader-epoch-checkpoint.tmp", None),
        ("partition.metadata", None),
        ("x0.log", None),
        (".log", None),
        ("٣.log", None),
        ("00000000000000000042.log.tmp", None),
        ("09223372036854775807.log", SegmentFile(2**63 - 1, ".log", "")),
        ("09223372036854775808.log", None),
        ("99999999999999999999.snapshot", None),
        ("42.log", None),
        ("000000000000000000000042.log", None),
    ],
)
def test_segment_file_names_are_read_back(name: str, expected: SegmentFile | None) -> None:
    assert parse_segment_file(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", PartitionDir(TopicPartition("t", 0), DirState.LIVE)),
        ("a-b.c-12", PartitionDir(TopicPartition("a-b.c", 12), DirState.LIVE)),
        ("--3", PartitionDir(TopicPartition("-", 3), DirState.LIVE)),
        (f"a-b-0.{HEX}-delete", PartitionDir(TopicPartition("a-b", 0), DirState.DELETE)),
        (f"a-b-0.{HEX}-future", PartitionDir(TopicPartition("a-b", 0), DirState.FUTURE)),
        (f"a-b-0.{HEX}-stray", PartitionDir(TopicPartition("a-b", 0), DirState.STRAY)),
        ("topic", None),
        ("-0", None),
        ("t-x", None),
        ("t-", None),
        ("t--1", PartitionDir(TopicPartition("t-", 1), DirState.LIVE)),
        ("t-0.abc-delete", None),
        ("-delete", None),
        ("lost+found", None),
        ("t-2147483647", PartitionDir(TopicPartition("t", 2**31 - 1), DirState.LIVE)),
        ("t-2147483648", None),
    ],
)
def test_partition_directories_are_split_at_the_last_dash(
    name: str, expected: PartitionDir | None
) -> None:
    assert parse_partition_dir(name) == expected


def test_names_of_deleted_directories_are_cut_to_what_a_file_system_takes() -> None:
    tp = TopicPartition("x" * 249, 7)
    name = state_dir_name(tp, DirState.DELETE, HEX)
    assert len(name) == 255
    assert name.endswith(f"x-7.{HEX}-delete")
    parsed = parse_partition_dir(name)
    assert parsed is not None
    assert parsed.state is DirState.DELETE
    short = state_dir_name(TopicPartition("t", 7), DirState.FUTURE, HEX)
    assert short == f"t-7.{HEX}-future"


def test_path_parts() -> None:
    assert partition_dir_name(TopicPartition("a-b", 1)) == "a-b-1"
    assert (parent_dir("/a/b"), file_name("/a/b")) == ("/a", "b")
    assert (parent_dir("/b"), parent_dir("b")) == ("/", ".")
