"""`pykafkalog sql`: topics as tables, the files that it reads, and its errors."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from storage.os_filesystem import OsFile
from storage.waits import at_once
from tests.support.command_line import Command, Printed
from tests.support.log_builder import LogBuilder
from tests.support.readable_directory import write_files
from tools.sql.engine import columns_quoted

pytest.importorskip("duckdb")

Sql = Callable[..., Printed]
BEGIN = 1_700_000_000_000


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """`web-orders-0`: a batch of two records a minute, in segments of some minutes."""
    return written(tmp_path)


def written(tmp_path: Path, misdated: int = -1) -> Path:
    """`misdated`: the minute whose records are dated in microseconds."""
    builder = LogBuilder(
        segment_bytes=4000, index_interval_bytes=200, message_timestamp_after_max_ms=2**63 - 1
    )
    for minute in range(60):
        at = (BEGIN + minute * 60_000) * (1000 if minute == misdated else 1)
        rows = [(at, b"k%d" % minute, json.dumps({"minute": minute}).encode() + b" " * 80, ())] * 2
        builder.log.append_as_leader(build_batch(rows), leader_epoch=0)
    builder.log.update_high_watermark(120)
    at_once(builder.stopped().close())
    write_files(builder, tmp_path / "web-orders-0")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nweb-orders 0 118\n")
    return tmp_path


@pytest.fixture
def sql(command: Command) -> Sql:
    return lambda query, log_dir, *options, code=0: command(
        "sql", query, "--log-dirs", log_dir, *options, code=code
    )


def test_records_below_the_high_watermark_in_three_formats(log_dir: Path, sql: Sql) -> None:
    query = 'select count(*) as n, max(offset) as last from "web-orders"'
    assert sql(query, log_dir, "--format", "csv").out == "n,last\n118,117\n"
    query = """select key, timestamp, headers, (decode(value)->>'$.minute')::int as minute
        from "web-orders" order by offset limit 1 offset 6"""
    assert json.loads(sql(query, log_dir, "--format", "json").out) == {
        "key": "k3",
        "timestamp": "2023-11-14T22:16:20+00:00",
        "headers": None,
        "minute": 3,
    }
    printed = sql(query, log_dir, "--quiet")
    assert "\nk3   2023-11-14 22:16:20+00:00  -             3\n" in printed.out
    assert printed.err == ""


def test_conditions_decide_what_is_read(log_dir: Path, sql: Sql) -> None:
    def left_out(condition: str, *options: str) -> tuple[str, str]:
        query = f'select count(*) from "web-orders" where {condition}'
        printed = sql(query, log_dir, "--format", "csv", *options)
        return printed.out.split()[1], printed.err

    count, said = left_out("timestamp >= timestamptz '2023-11-14 23:10:00Z'")
    assert count == "4" and "1 of 5 parts of the log" in said and "before its" not in said
    until = "timestamp < timestamptz '2023-11-14 22:20:00Z'"
    count, said = left_out(until, "--lateness", "1m")
    assert count == "14" and "1 of 5 parts" in said and "more than 60 s before" in said
    count, said = left_out(until, "--lateness", "any")
    assert count == "14" and "parts" not in said
    count, said = left_out("offset in (5, 7)")
    assert count == "2" and "1 of 5 parts" in said
    count, said = left_out("partition = 3")
    assert count == "0" and "0 of 5 parts" in said


def test_a_record_dated_in_the_future_does_not_hide_those_behind_it(
    tmp_path: Path, sql: Sql
) -> None:
    """By that record, all later ones are more than `--lateness` late."""
    query = """select count(*) from "web-orders" where timestamp
        between timestamptz '2023-11-14 22:20:00Z' and timestamptz '2023-11-14 23:10:00Z'"""
    assert sql(query, written(tmp_path, misdated=20), "--format", "csv").out.split()[1] == "98"


def test_pre_sized_indexes_are_not_told_as_read(log_dir: Path, sql: Sql) -> None:
    """Those of a segment that a broker is writing: some entries, and zeros up to 10 MB."""
    query = 'select sum(octet_length(value)) from "web-orders"'
    trimmed = sql(query, log_dir).err
    *_, last = sorted((log_dir / "web-orders-0").glob("*.index"))
    for path in (last, last.with_suffix(".timeindex")):
        os.truncate(path, 10_485_756 // 12 * 12)
    padded = sql(query, log_dir).err

    def kilobytes(said: str) -> float:
        found = re.match(r"Read ([\d.]+) KB in ", said)
        assert found is not None, said
        return float(found[1])

    assert kilobytes(trimmed) <= kilobytes(padded) < kilobytes(trimmed) + 1


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("condition", ["partition = 0", "partition < 1 and offset > 3"])
def test_the_logs_of_partitions_that_a_query_excludes_are_not_read(
    tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch, isolation: str, condition: str
) -> None:
    """Neither for records nor, in a committed read, for transactions."""
    builder = LogBuilder()
    for _ in range(100):
        builder.append(value=b"v" * 20_000)
    builder.stopped()
    for number in (0, 1):
        write_files(builder, tmp_path / f"orders-{number}")
    checkpoint = "0\n2\norders 0 100\norders 1 100\n"
    (tmp_path / "replication-offset-checkpoint").write_text(checkpoint)
    read = {"orders-0": 0, "orders-1": 0}
    pread = OsFile.pread

    def noted(file: OsFile, size: int, position: int) -> bytes:
        content = pread(file, size, position)
        read[Path(file.path).parent.name] += len(content)
        return content

    monkeypatch.setattr(OsFile, "pread", noted)
    query = f"select count(*) from orders where {condition}"
    sql(query, tmp_path, "--isolation-level", isolation)
    assert read["orders-0"] > 2_000_000
    assert read["orders-1"] < 200_000


def test_what_is_wrong_is_one_sentence(log_dir: Path, sql: Sql, command: Command) -> None:
    def fails(query: str, *options: str) -> str:
        said = sql(query, log_dir, *options, code=1).err
        assert said.startswith("pykafkalog sql: ") and said.count("\n") == 1
        return said

    assert "The topics are: web-orders" in fails("select 1 from orders")
    assert "nope" in fails('select nope from "web-orders"')
    assert "syntax error" in fails("selec 1")
    assert "--lateness: 1y" in fails("select 1", "--lateness", "1y")
    assert "which logs?" in command("sql", "select 1", code=1).err
    (segment, *_) = sorted((log_dir / "web-orders-0").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[100] ^= 1
    segment.write_bytes(content)
    query = 'select count(value) from "web-orders" where value is not null'
    assert "web-orders-0, offset 0: the checksum" in fails(query)


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ("select offset from t", 'select "offset" from t'),
        ("select max(Offset), 1 from t", 'select max("offset"), 1 from t'),
        ("select 1 from t limit 5 offset 10", "select 1 from t limit 5 offset 10"),
        ("select 'offset' from t where offset>5 ", "select 'offset' from t where \"offset\">5 "),
        (
            'select "offset" from t order by offset desc',
            'select "offset" from t order by "offset" desc',
        ),
    ],
)
def test_the_column_offset_needs_no_quotes(query: str, quoted: str) -> None:
    assert columns_quoted(query) == quoted
