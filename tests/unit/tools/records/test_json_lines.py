"""Records as JSON lines and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.records.json_lines import BadLine, from_json, to_json
from tools.records.record import Record

DATA = st.none() | st.binary() | st.text().map(str.encode) | st.sampled_from([b"null", b"None"])
RECORDS = st.builds(
    Record,
    topic=st.just("t"),
    partition=st.integers(0, 10),
    offset=st.integers(0, 1 << 60),
    timestamp=st.none() | st.integers(-1, 1 << 60),
    timestamp_type=st.none(),
    key=DATA,
    value=DATA,
    headers=st.lists(st.tuples(st.text(), DATA)).map(tuple),
)


@given(RECORDS)
def test_a_record_comes_back_byte_for_byte(record: Record) -> None:
    line = to_json(record)
    assert "\n" not in line
    assert from_json(line.encode()) == record


def test_null_is_told_from_the_words() -> None:
    shown = [json.loads(to_json(Record(value=v)))["value"] for v in (None, b"null", b"None", b"")]
    assert shown == [None, "null", "None", ""]
    assert json.loads(to_json(Record(key=b"\xff")))["key"] == {"base64": "/w=="}
    assert json.loads(to_json(Record(key=b'{"base64": "/w=="}')))["key"] == '{"base64": "/w=="}'


def test_only_the_value_has_to_be_there() -> None:
    assert from_json(b'{"value": null}') == Record()
    assert from_json(b'{"value": "a", "headers": {"h": null}}').headers == (("h", None),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "is no JSON"),
        (b"{", "is no JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 100_000, "is nested too deep"),
        (b"[]", "is no JSON object"),
        (b'{"key": "a"}', "has no value; null makes a tombstone"),
        (b'{"value": "a", "Key": "b"}', "has a field 'Key'"),
        (b'{"value": 1}', "has a value that is no string"),
        (b'{"value": {"base64": "/w="}}', "has a value whose base64 is wrong"),
        (b'{"value": {"base64": "/w!="}}', "has a value whose base64 is wrong"),
        (b'{"value": {"base64": "/!w=="}}', "has a value whose base64 is wrong"),
        (b'{"value": {"base64": 1}}', "has a value that is no string"),
        (rb'{"value": "\ud800"}', "has a value with half a surrogate pair"),
        (b'{"value": "a", "timestamp": 1.5}', "has a timestamp that is no whole number"),
        (b'{"value": "a", "partition": true}', "has a partition that is no whole number"),
        (b'{"value": "a", "headers": ["h"]}', "has headers that are no list"),
        (b'{"value": "a", "headers": [["h", 1]]}', "has a header h that is no string"),
        (b'{"value": "a", "topic": 1}', "has a topic that is no string"),
    ],
)
def test_a_bad_line_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(BadLine) as caught:
        from_json(line)
    assert str(caught.value).startswith(reason)
