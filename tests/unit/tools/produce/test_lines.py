"""Lines made records, and bad lines named."""

import argparse
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import CommandError
from tools.produce.lines import BadInput, parser_of, read_lines
from tools.records.json_lines import to_json
from tools.records.record import Record

NOTHING = {
    "topic": "t",
    "json": False,
    "format": None,
    "key_separator": None,
    "null_marker": None,
    "key": None,
    "header": [],
    "timestamp": None,
    "partition": -1,
    "any_partition": False,
}
DATA = st.none() | st.binary() | st.text().map(str.encode)


def read(data: bytes, source: str = "", **given: Any) -> list[Record]:
    parse = parser_of(argparse.Namespace(**{**NOTHING, **given}))
    return [line.record for line in read_lines([(source, io.BytesIO(data))], parse)]


def test_text() -> None:
    assert read(b"a\n\r\nb") == [Record(topic="t", value=v) for v in (b"a", b"", b"b")]
    assert read(b"k:v:w\n:\n", key_separator=":") == [
        Record(topic="t", key=b"k", value=b"v:w"),
        Record(topic="t", key=b"", value=b""),
    ]
    assert read(b"k\tv", key_separator=r"\t") == [Record(topic="t", key=b"k", value=b"v")]
    assert read(b"k\x1fv", key_separator=r"\x1f") == [Record(topic="t", key=b"k", value=b"v")]
    marked = read(b"\\N:null\na:\\N\n", key_separator=":", null_marker=r"\N")
    assert [(r.key, r.value) for r in marked] == [(None, b"null"), (b"a", None)]


@pytest.mark.parametrize(("given", "partition"), [(-1, None), (0, 0), (1, 1)])
def test_partition_0_is_one_of_them(given: int, partition: int | None) -> None:
    assert [one.partition for one in read(b"v", partition=given)] == [partition]


def test_what_holds_for_every_record() -> None:
    (record,) = read(
        b"v", key="k", header=["h=1=2", "e="], timestamp="1970-01-01T00:00:01", partition=3
    )
    assert record == Record(
        topic="t",
        key=b"k",
        value=b"v",
        headers=(("h", b"1=2"), ("e", b"")),
        timestamp=1000,
        partition=3,
    )
    with pytest.raises(CommandError, match="NAME=VALUE"):
        read(b"v", header=["h"])
    for wrong in ({"timestamp": "0"}, {"partition": 1 << 31}):
        with pytest.raises(CommandError, match="every record has the"):
            read(b"v", **wrong)


@given(
    st.lists(
        st.builds(
            Record,
            topic=st.just("t"),
            partition=st.none() | st.integers(0, 5),
            offset=st.integers(0, 9),
            timestamp=st.none() | st.integers(1, 1 << 50),
            timestamp_type=st.sampled_from([None, "create", "append"]),
            key=DATA,
            value=DATA,
            headers=st.lists(
                st.tuples(st.text().filter(lambda name: "\0" not in name), DATA), max_size=3
            ).map(tuple),
        ),
        max_size=4,
    )
)
def test_what_consume_writes_is_read_as_the_same_records(records: list[Record]) -> None:
    lines = "".join(to_json(record) + "\n" for record in records).encode()
    written = [record._replace(offset=None, timestamp_type=None) for record in records]
    found = read(lines, json=True)
    assert [record._replace(offset=None, timestamp_type=None) for record in found] == written


def test_json_lines_name_topic_and_partition_unless_told_otherwise() -> None:
    line = b'{"topic": "own", "partition": 2, "value": "v"}'
    assert read(line, json=True, topic=None) == [Record(topic="own", partition=2, value=b"v")]
    assert read(line, json=True, partition=1)[0].partition == 1
    assert read(line, format="json", any_partition=True) == [Record(topic="t", value=b"v")]


@pytest.mark.parametrize(
    ("data", "said", "given"),
    [
        (b"a:1\nb\n", "line 2 has no ':' in it", {"key_separator": ":"}),
        (b'{"value": "a"}\n\n', "line 2 is no JSON", {"json": True}),
        (b'{"value": "a"}', "line 1 names no topic", {"json": True, "topic": None}),
        (b'{"value": "a", "timestamp": 0}', "line 1 has the timestamp 0", {"json": True}),
        (b'{"value": "a", "partition": -1}', "line 1 has the partition -1", {"json": True}),
        (
            rb'{"value": "a", "headers": [["a\u0000b", "c"]]}',
            "line 1 has a header name with a zero byte",
            {"json": True},
        ),
    ],
)
def test_a_bad_line_is_named_with_the_reason(data: bytes, said: str, given: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        read(data, **given)
    assert str(caught.value).startswith(said)
    with pytest.raises(BadInput, match=r"line [12] of orders\.txt "):
        read(data, source="orders.txt", **given)
