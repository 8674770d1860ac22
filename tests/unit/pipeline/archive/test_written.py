"""Sums of what was written, and the description of a table."""

import pytest

from pipeline.archive.description import Description
from pipeline.archive.tables.table import WrittenFile
from pipeline.archive.written import Written
from pipeline.errors import PipelineError


def test_files_are_added_up_by_partition() -> None:
    written = Written()
    written.add(
        [
            WrittenFile("orders", 1, "2026-11-22", 10, 100, 112, 1000),
            WrittenFile("orders", 1, "2026-11-21", 5, 90, 99, 500),
            WrittenFile("orders", 0, "2026-11-22", 1, 0, 0, 10),
        ]
    )
    assert (written.records, written.files, written.bytes) == (16, 3, 1510)
    first, second = written.as_json()["partitions"]
    assert (first["partition"], first["records"]) == (0, 1)
    assert second == {
        "topic": "orders",
        "partition": 1,
        "records": 15,
        "first_offset": 90,
        "last_offset": 112,
        "files": 2,
        "bytes": 1500,
    }


def test_a_description_is_read_back() -> None:
    described = Description("delta", "text", "json", {"type": "struct", "fields": []})
    assert Description.parse(described.text(), "there") == described
    for text in ("", "[]", '{"table": "delta"}', '{"other": 1}'):
        with pytest.raises(PipelineError, match="there is no description"):
            Description.parse(text, "there")


def test_a_table_is_not_gone_on_with_as_another() -> None:
    begun = Description("delta", "bytes", "json")
    begun.require_same(Description("delta", "bytes", "json"), "there")
    with pytest.raises(PipelineError, match="begun with --format delta, not parquet"):
        begun.require_same(Description("parquet", "bytes", "json"), "there")
    with pytest.raises(PipelineError, match="begun with --value json, not text"):
        begun.require_same(Description("delta", "bytes", "text"), "there")
