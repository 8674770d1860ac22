"""A batch query over files has the wanted number of tasks and reads what its conditions leave."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.source.batch import PushingLogReader
from pipeline.source.options import parse_options
from protocol.records.builder import build_batch
from storage.reader.scan import ScanError
from tests.unit.pipeline.source.test_pushed import condition


def reader(directory: Path, **options: str) -> PushingLogReader:
    for partition in (0, 1):
        place = directory / f"t-{partition}"
        place.mkdir(exist_ok=True)
        (place / f"{0:020}.log").write_bytes(
            b"".join(build_batch([(n, None, b"v", ())], base_offset=n) for n in range(10))
        )
    given = {"log.dirs": str(directory), "subscribe": "t", **options}
    return PushingLogReader(parse_options(given), ["offset"])


def sizes(source: PushingLogReader) -> list[int]:
    return [part.value.end_offset - part.value.start_offset for part in source.partitions()]


def pushed(source: PushingLogReader, kind: str, column: str, value: Any) -> None:
    source.pushFilters([condition(kind, column, value)])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [10, 10]),
        ({"minPartitions": "2"}, [10, 10]),
        ({"minPartitions": "3"}, [7, 3, 7, 3]),
        ({"minPartitions": "40"}, [1] * 20),
        ({"maxRecordsPerPartition": "10"}, [10, 10]),
        ({"maxRecordsPerPartition": "9"}, [9, 1, 9, 1]),
        ({"minPartitions": "5", "maxRecordsPerPartition": "3"}, [3, 3, 3, 1] * 2),
        ({"minPartitions": "9", "maxRecordsPerPartition": "3"}, [3, 3, 3, 1] * 2),
        ({"minPartitions": "20", "maxRecordsPerPartition": "3"}, [1] * 20),
    ],
)
def test_as_many_tasks_as_are_asked_for(
    tmp_path: Path, options: dict[str, str], expected: list[int]
) -> None:
    assert sizes(reader(tmp_path, **options)) == expected


def test_conditions_leave_out_what_is_not_needed(tmp_path: Path) -> None:
    source = reader(tmp_path)
    pushed(source, "EqualTo", "partition", 1)
    pushed(source, "GreaterThan", "offset", 6)
    assert sizes(source) == [3]
    (part,) = source.partitions()
    assert part.value.start_position > 0  # what is before is not read from the disk
    assert [o for batch in source.read(part) for o in batch["offset"].to_pylist()] == [7, 8, 9]
    nothing = reader(tmp_path)
    pushed(nothing, "GreaterThanOrEqual", "offset", 10)
    (part,) = nothing.partitions()
    assert [*nothing.read(part)] == []


def test_conditions_do_not_hide_a_range_that_is_wrong(tmp_path: Path) -> None:
    source = reader(tmp_path, endingOffsets='{"t":{"0":11,"1":10}}')
    pushed(source, "LessThan", "offset", 5)
    with pytest.raises(ScanError, match="t-0: offset 11 is not in the log, which has 0 to 10"):
        source.partitions()
