"""Errors that leave a Python process of Spark: in a sentence, and where Spark says them."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import DataSourceReader

from pipeline.source.datasource import PyKafkaLogDataSource
from pipeline.source.options import BadOption
from pipeline.source.streaming import RefusedStream
from pipeline.source.telling import telling
from storage.reader.scan import ScanError

HIDES = "SPARK_HIDE_TRACEBACK"


@pytest.mark.parametrize("in_worker", [True, False])
@pytest.mark.parametrize("error", [BadOption("x"), ScanError("x"), OSError("x"), KeyError("x")])
def test_the_traceback_of_what_a_user_can_mend_stays_in_a_worker(
    monkeypatch: pytest.MonkeyPatch, error: Exception, in_worker: bool
) -> None:
    monkeypatch.setenv(HIDES, "")
    if in_worker:
        monkeypatch.setitem(sys.modules, "pyspark.worker_util", sys)
    else:
        monkeypatch.delitem(sys.modules, "pyspark.worker_util", raising=False)
    with pytest.raises(type(error)), telling():
        raise error
    assert bool(os.environ[HIDES]) == (in_worker and not isinstance(error, KeyError))


def source(directory: Path, **options: str) -> PyKafkaLogDataSource:
    return PyKafkaLogDataSource({"log.dirs": str(directory), "subscribe": "t", **options})


def test_what_is_wrong_in_any_query_is_said_where_the_job_is_built(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="no number"):
        source(tmp_path, minPartitions="few").schema()
    source(tmp_path, endingOffsets="latest", startingOffsets="latest").schema()


def test_a_stream_whose_options_are_wrong_says_so_at_each_call(tmp_path: Path) -> None:
    wrong = source(tmp_path, endingOffsets="latest")
    reader: Any = wrong.streamReader(wrong.schema())
    assert isinstance(reader, RefusedStream)
    for call in (
        reader.initialOffset,
        reader.latestOffset,
        lambda: reader.partitions({}, {}),
        lambda: reader.read(None),
    ):
        with pytest.raises(BadOption, match="endingOffsets has no meaning"):
            call()


def test_conditions_are_taken_only_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, asked = source(tmp_path), source(tmp_path, pushDownPredicate="true")
    assert "pushFilters" not in vars(type(there.reader(there.schema())))
    monkeypatch.setattr(DataSourceReader, "pushFilters", None, raising=False)
    reader: Any = asked.reader(there.schema())
    filters: list[Any] = [object()]
    assert reader.pushFilters(filters) is filters
    monkeypatch.delattr(DataSourceReader, "pushFilters")
    with pytest.raises(BadOption, match=r"needs Spark 4\.1; this is \d"):
        asked.reader(there.schema())
