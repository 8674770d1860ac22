"""Names of a Parquet table's files, and how a day's directory is replaced."""

from pathlib import Path

import pytest

from pipeline.archive.tables import parquet
from pipeline.errors import PipelineError

WRITER = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def test_a_name_says_writer_batch_and_partition() -> None:
    name = parquet.file_name(WRITER, 12, 3)
    assert name == "0a1b2c3d-0000000012-00003.parquet"
    found = parquet.NAME.match(name)
    assert found is not None and found.groups() == ("0a1b2c3d", "0000000012", "00003")


@pytest.mark.parametrize(
    ("batch", "committed", "settled"), [(4, 5, True), (5, 5, True), (6, 5, False), (0, None, False)]
)
def test_a_file_of_a_batch_that_may_be_given_again_is_left_alone(
    batch: int, committed: int | None, settled: bool
) -> None:
    """Merged into another file, its name would no longer say that it is there."""
    name = parquet.file_name(WRITER, batch, 0)
    assert parquet._is_settled(name, committed, WRITER) is settled


def test_files_of_other_writers_and_merged_ones_are_settled() -> None:
    other = parquet.file_name("ffffffff-0000", 7, 0)
    assert parquet._is_settled(other, 5, WRITER)
    assert parquet._is_settled("merged-00000.parquet", 5, WRITER)


def test_directories_are_exchanged_in_one_step(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    parquet._exchange(str(tmp_path / "new"), str(tmp_path / "old"))
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["old"]


def test_what_cannot_be_exchanged_is_said(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="does not exchange directories"):
        parquet._exchange(str(tmp_path / "none"), str(tmp_path))
