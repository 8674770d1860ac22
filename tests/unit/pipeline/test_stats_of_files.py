"""Statistics from files count transactions by their end, as far as their markers are there."""

from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.stats.files import count_partition, facts
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from storage.waits import at_once
from tests.support.log_builder import LogBuilder
from tests.support.readable_directory import write_files


def written(builder: LogBuilder, directory: Path) -> str:
    """The log's files, on the disk."""
    at_once(builder.stopped().close())
    partition = directory / "orders-0"
    write_files(builder, partition)
    return str(partition)


def test_outcomes_are_counted_by_their_markers(tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.write(7, 0, 3)
    builder.write(8, 0, 2)
    builder.write(7, 3, 4)  # the same transaction
    builder.append(5)  # none
    builder.end_transaction(7, ControlType.COMMIT)
    builder.write(9, 0, 1)
    builder.end_transaction(8, ControlType.ABORT)
    builder.end_transaction(8, ControlType.ABORT)  # one that had no records here
    builder.write(7, 7, 6)
    log = facts([count_partition(written(builder, tmp_path))])
    assert (log.committed, log.committed_records) == (1, 7)
    assert (log.aborted, log.aborted_records) == (1, 2)
    assert (log.open, log.open_records) == (2, 7)
    assert log.empty_markers == 1
    assert log.producers == 3
    assert log.batches == 9


def test_a_transaction_may_go_on_in_the_next_segment(tmp_path: Path) -> None:
    builder = LogBuilder(segment_bytes=150)
    builder.write(7, 0, 1)
    builder.write(7, 1, 1)
    builder.end_transaction(7, ControlType.COMMIT)
    assert len([name for name in builder.names() if name.endswith(".log")]) > 1
    log = facts([count_partition(written(builder, tmp_path))])
    assert (log.committed, log.committed_records, log.open) == (1, 2, 0)


def test_partitions_count_together(tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.append(2, codec=CompressionType.LZ4)
    builder.append(2)
    directory = written(builder, tmp_path)
    once, twice = (facts([count_partition(directory)] * times) for times in (1, 2))
    assert once.codecs == (("none", 1), ("lz4", 1))
    assert twice.codecs == (("none", 2), ("lz4", 2))
    assert (
        twice.file_bytes
        == 2 * once.file_bytes
        == 2 * sum(path.stat().st_size for path in Path(directory).glob("*.log"))
    )


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="orders-0: No such file"):
        count_partition(str(tmp_path / "orders-0"))
