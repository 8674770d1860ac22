"""`pykafkalog sql` and times that Python's `datetime`, or no timestamp, can hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from protocol.records.builder import build_batch
from tests.support.command_line import Command, Printed
from tools.sql.values import python_values

pytest.importorskip("duckdb")

MICROS = 1_795_803_382_261_000
"""A time in November 2026, in microseconds."""
FAR = pa.scalar(MICROS * 1000, pa.timestamp("us", "UTC"))


def log_dir(directory: Path, *times: int) -> str:
    partition = directory / "orders-0"
    partition.mkdir()
    batches = [build_batch([(at, b"k", b"v", ())], base_offset=n) for n, at in enumerate(times)]
    (partition / f"{0:020}.log").write_bytes(b"".join(batches))
    return str(directory)


@pytest.fixture
def sql(command: Command) -> Callable[..., Printed]:
    return lambda query, directory, form="json", code=0: command(
        "sql", query, "--log-dirs", directory, "--format", form, "--quiet", code=code
    )


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (MICROS * 1000, pa.timestamp("us", "UTC"), "58876-09-28 08:51:01+00:00"),
        (MICROS * 1000 + 7, pa.timestamp("us"), "58876-09-28 08:51:01.000007"),
        (253_402_300_800_000, pa.timestamp("ms"), "10000-01-01 00:00:00"),
        (2**63 - 1, pa.timestamp("us", "UTC"), "infinity"),
        (1 - 2**63, pa.timestamp("us"), "-infinity"),
        (2_932_897, pa.date32(), "10000-01-01"),
        (-719_163, pa.date32(), "0000-12-31"),
        (2**31 - 1, pa.date32(), "infinity"),
    ],
)
def test_a_time_that_python_cannot_hold_is_a_text(value: int, kind: Any, expected: str) -> None:
    assert python_values(pa.array([value, None], kind)) == [expected, None]


def test_times_that_python_holds_stay_what_they_are_at_both_ends() -> None:
    for value, kind in [
        (2_932_896, pa.date32()),
        (-719_162, pa.date32()),
        (253_402_300_799_999, pa.timestamp("ms")),
        (-62_135_596_800_000, pa.timestamp("ms")),
    ]:
        array = pa.array([value], kind)
        assert python_values(array) == array.to_pylist()


def test_texts_stand_where_the_times_stood() -> None:
    text = "58876-09-28 08:51:01+00:00"
    assert python_values(pa.array([{"at": FAR, "n": 1}])) == [{"at": text, "n": 1}]
    assert python_values(pa.array([[FAR, None]])) == [[text, None]]
    pairs = pa.array([[("a", FAR)]], pa.map_(pa.string(), FAR.type))
    assert python_values(pairs) == [[("a", text)]]


def test_years_after_9999_are_shown_in_all_formats(
    tmp_path: Path, sql: Callable[..., Printed]
) -> None:
    directory = log_dir(tmp_path, MICROS, 0)
    query = "select timestamp, timestamp::date as day, timestampMs from orders order by offset"
    assert [json.loads(line) for line in sql(query, directory).out.splitlines()] == [
        {"timestamp": "58876-09-28 08:51:01+00:00", "day": "58876-09-28", "timestampMs": MICROS},
        {"timestamp": "1970-01-01T00:00:00+00:00", "day": "1970-01-01", "timestampMs": 0},
    ]
    for form in ("csv", "table"):
        assert "58876-09-28 08:51:01+00:00" in sql(query, directory, form).out


def test_a_time_that_no_timestamp_holds_names_its_record(
    tmp_path: Path, sql: Callable[..., Printed]
) -> None:
    nanos = MICROS * 1000
    directory = log_dir(tmp_path, 1, nanos, 2)
    for query in (
        "select * from orders",
        "select count(*) from orders where timestamp > '2026-01-01'",
    ):
        said = sql(query, directory, code=1).err
        assert said.startswith(f"pykafkalog sql: orders-0, offset 1: its timestamp, {nanos} ms,")
        assert said.count("\n") == 1
    query = "select offset from orders where timestampMs > 2 and key is not null"
    assert json.loads(sql(query, directory).out) == {"offset": 1}
