"""Topics in Arrow: the guide's examples, and datasets that engines ask."""

import pickle
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pykafkalog.reader import ScanError, TopicPartition, UnknownTopic, open_topics
from tests.support.installation import ROOT
from tests.support.readable_directory import write_log_dir
from tests.support.reader_guide import EXAMPLE_DIRECTORY

pc = pytest.importorskip("pyarrow.compute")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_log_dir(tmp_path / "kafka-logs")
    return tmp_path / "kafka-logs"


def test_the_guide_can_be_followed(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/reader.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    exec("\n".join(blocks).replace(EXAMPLE_DIRECTORY, str(log_dir)), names)
    assert names["since"].to_table().num_rows == 3
    assert names["some"].to_table(["offset"]).to_pydict() == {"offset": [1, 2]}
    assert "2 teapots" in capsys.readouterr().out


def test_places_are_offsets_times_and_words(log_dir: Path) -> None:
    def offsets(**options: Any) -> list[int]:
        found = open_topics(log_dir, "orders", **options).to_table(["offset"])
        return list(found["offset"].to_pylist())

    begin = datetime.fromtimestamp(1_700_000_000, UTC)
    assert offsets() == [0, 1, 2]
    assert offsets(start=begin.replace(microsecond=1000)) == [1, 2]
    assert offsets(end=begin.replace(microsecond=2000)) == [0, 1]
    assert offsets(start="latest") == []
    assert offsets(start={TopicPartition("orders", 0): 2}) == [2]
    with pytest.raises(ValueError, match="'first' is no offset"):
        offsets(start="first")
    with pytest.raises(ValueError, match="serializable"):
        offsets(isolation="serializable")
    with pytest.raises(UnknownTopic):
        open_topics(log_dir, "nope").to_table()
    assert issubclass(UnknownTopic, ScanError)


def test_a_dataset_decodes_and_reads_what_is_needed(log_dir: Path) -> None:
    dataset = open_topics(log_dir).dataset()
    assert dataset.count_rows() == 3
    assert dataset.head(2, columns=["offset"]).to_pydict() == {"offset": [0, 1]}
    projected = dataset.to_table(columns={"next": pc.field("offset") + 1})
    assert projected.to_pydict() == {"next": [1, 2, 3]}
    late = dataset.filter(pc.field("offset") > 0)
    found = late.to_table(columns=["key"], filter=pc.is_null(pc.field("value")))
    assert found.to_pydict() == {"key": [b"anna"]}
    read = dataset.scanned.tasks
    assert late.to_table(filter=pc.field("topic") == "others").num_rows == 0
    assert dataset.scanned.tasks == read and dataset.scanned.tasks_left_out == 1
    assert pickle.loads(pickle.dumps(dataset)).count_rows() == 3
    assert [b.num_rows for b in late.to_batches()] == [2]


def test_duckdb_and_polars_take_a_dataset(log_dir: Path) -> None:
    dataset = open_topics(log_dir).dataset()
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("orders", dataset)
        query = "select decode(key), count(*) from orders where partition = 0 group by 1 order by 1"
        assert connection.execute(query).fetchall() == [("anna", 2), ("bert", 1)]
    polars = pytest.importorskip("polars")
    frame = polars.scan_pyarrow_dataset(dataset).filter(polars.col("offset") == 1)
    assert frame.select("value").collect().to_dicts() == [{"value": b"1 kettle"}]
