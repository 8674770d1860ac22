"""A batch of messages is printed as its records are, one by one."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.client_messages import FakeMessage
from tools.consume.lines import line_format
from tools.errors import CommandError
from tools.records.record import Record


def arguments(**given: object) -> argparse.Namespace:
    nothing = {"format": None, "json": False, "key_separator": None, "null_marker": None}
    return argparse.Namespace(**{**nothing, **given})


DATA = st.none() | st.binary(max_size=3) | st.text(max_size=3).map(str.encode)
FORMS = [
    {},
    {"null_marker": "nil"},
    {"key_separator": ":"},
    {"key_separator": ""},
    {"key_separator": r"\xa9"},
    {"key_separator": "é"},
    {"json": True},
    {"format": "{key}{value}"},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(pairs=st.lists(st.tuples(DATA, DATA), max_size=4))
def test_a_batch_is_printed_as_its_records_are(
    form: dict[str, object], pairs: list[tuple[bytes | None, bytes | None]]
) -> None:
    made = line_format(arguments(**form))
    records = [
        Record(
            topic="t",
            partition=0,
            offset=0,
            timestamp=1000,
            timestamp_type="create",
            key=key,
            value=value,
        )
        for key, value in pairs
    ]
    assert made.block([FakeMessage(*pair) for pair in pairs]) == b"".join(map(made.line, records))


def test_halves_of_a_character_are_no_text() -> None:
    made = line_format(arguments(key_separator=""))
    assert made.block([FakeMessage(b"\xc3", b"\xa9")]) == b"base64:ww==base64:qQ==\n"
    assert line_format(arguments()).block(
        [FakeMessage(None, b"\xc3"), FakeMessage(None, b"\xa9")]
    ) == (b"base64:ww==\nbase64:qQ==\n")


@pytest.mark.parametrize(
    ("separator", "printed"),
    [
        (r"\t", b"k\tv\n"),
        (r"\n", b"k\nv\n"),
        (r"\x1f", b"k\x1fv\n"),
        (r" \x2D ", b"k - v\n"),
        (r"\\t", b"k\\tv\n"),
        ("\t", b"k\tv\n"),
    ],
)
def test_escapes_of_a_separator(separator: str, printed: bytes) -> None:
    made = line_format(arguments(key_separator=separator))
    assert made.block([FakeMessage(b"k", b"v")]) == printed


@pytest.mark.parametrize("separator", [r"\q", "\\", r"\x1", r"a\x"])
def test_an_unknown_escape_is_told(separator: str) -> None:
    with pytest.raises(CommandError, match="no escape"):
        line_format(arguments(key_separator=separator))
