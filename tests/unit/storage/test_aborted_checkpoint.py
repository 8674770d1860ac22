"""The file of what transaction indexes have to hold: its form, and when a line is believed."""

import pytest
from crc32c import crc32c

from protocol.types import TopicPartition
from storage.aborted_checkpoint import (
    NOTHING_NOTED,
    NotedAborted,
    encode_aborted,
    line_of,
    read_aborted,
    word_of,
)
from storage.errors import CheckpointError
from storage.index.transaction_index import NO_ABORTED
from tests.support.faulty_filesystem import FaultyFileSystem

PATH = "/d/aborted-transactions-checkpoint"
TP = TopicPartition("a.b-c", 7)
TOPIC_ID, OTHER_ID = bytes(range(16)), bytes(16)
SUM = (68, 1234567)


def written(fs: FaultyFileSystem, *lines: str) -> bytes:
    content = encode_aborted(lines)
    fs.write_bytes(PATH, content)
    return content


def some_line(point: int = 30) -> str:
    words = [word_of(0, NO_ABORTED), word_of(10, SUM), word_of(20, None)]
    return line_of(TP, TOPIC_ID, point, words)


def noted(fs: FaultyFileSystem, point: int = 30) -> NotedAborted:
    written(fs, some_line(point))
    return read_aborted(fs, "/d")[TP]


def test_what_is_written_is_read(fs: FaultyFileSystem) -> None:
    line = some_line()
    assert line == "a.b-c 7 AAECAwQFBgcICQoLDA0ODw 30 0 10:68:1234567 20:?"
    written(fs, line, line_of(TopicPartition("empty", 0), OTHER_ID, 0, ()))
    found = read_aborted(fs, "/d")
    assert found[TP] == NotedAborted(
        TOPIC_ID,
        30,
        {0: (10, NO_ABORTED), 10: (20, SUM), 20: (30, None)},
        line,
    )
    assert found[TopicPartition("empty", 0)][1:3] == (0, {})
    assert len(found) == 2


def test_no_file_says_nothing(fs: FaultyFileSystem) -> None:
    assert read_aborted(fs, "/d") == {}
    written(fs)
    assert read_aborted(fs, "/d") == {}


def test_a_file_that_was_cut_or_changed_anywhere_is_not_believed(fs: FaultyFileSystem) -> None:
    content = written(fs, some_line(), some_line().replace("a.b-c", "d"))
    for end in range(len(content)):
        fs.write_bytes(PATH, content[:end])
        with pytest.raises(CheckpointError):
            read_aborted(fs, "/d")
    for bit in range(len(content) * 8):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        fs.write_bytes(PATH, bytes(changed))
        with pytest.raises(CheckpointError):
            read_aborted(fs, "/d")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n1\na 0 30 0:68:1234567\n",  # version 0, which was written at an orderly stop
        b"2 %d\n%s\n" % (crc32c(some_line().encode() + b"\n"), some_line().encode()),
    ],
)
def test_another_version_is_not_read(fs: FaultyFileSystem, content: bytes) -> None:
    fs.write_bytes(PATH, content)
    with pytest.raises(CheckpointError):
        read_aborted(fs, "/d")


@pytest.mark.parametrize("line", ["t 0", "t 0 x 5", f"{some_line()}:1", f"{some_line()} x", "\xff"])
def test_nonsense_with_a_right_checksum_is_refused_as_well(fs: FaultyFileSystem, line: str) -> None:
    body = line.encode("latin-1") + b"\n"
    fs.write_bytes(PATH, b"1 %d\n%s" % (crc32c(body), body))
    with pytest.raises(CheckpointError):
        read_aborted(fs, "/d")


def test_a_line_is_of_its_topic_and_of_recovery_points_that_are_not_above_its_own(
    fs: FaultyFileSystem,
) -> None:
    line = noted(fs)
    assert [line.fits(TOPIC_ID, point, clean=False) for point in (0, 29, 30, 31)] == [
        True,
        True,
        True,
        False,
    ]
    assert not line.fits(OTHER_ID, 30, clean=False)
    assert not NOTHING_NOTED.fits(NOTHING_NOTED.topic_id, 0, clean=False)


def test_after_an_orderly_stop_the_recovery_point_is_that_of_the_line(fs: FaultyFileSystem) -> None:
    line = noted(fs)
    assert [line.fits(TOPIC_ID, point, clean=True) for point in (29, 30, 31)] == [
        False,
        True,
        False,
    ]
    assert not line.fits(OTHER_ID, 30, clean=True)


def test_a_segment_begins_and_ends_where_the_line_says(fs: FaultyFileSystem) -> None:
    line = noted(fs)
    assert line.of(0, 10) == NO_ABORTED
    assert [line.of(0, end) for end in (9, 11, 20, 2**63)] == [None] * 4
    assert [line.of(10, end) for end in (20, 19, 21)] == [SUM, None, None]
    assert [line.of(base, 10) for base in (5, 40)] == [None, None]


def test_the_last_segment_of_a_line_may_have_grown_since(fs: FaultyFileSystem) -> None:
    written(fs, line_of(TP, TOPIC_ID, 30, [word_of(0, NO_ABORTED), word_of(10, SUM)]))
    line = read_aborted(fs, "/d")[TP]
    assert [line.of(10, end) for end in (29, 30, 31, 2**63)] == [None, SUM, SUM, SUM]
