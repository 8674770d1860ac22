"""Times and spans as people type them."""

import pytest

from tools.errors import CommandError
from tools.moments import iso_time, parse_moment, parse_span


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("@1700000000000", 1_700_000_000_000),
        ("9223372036854775807", 2**63 - 1),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:00.5", 500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1000),
    ],
)
def test_moments_are_utc_unless_they_name_a_zone(text: str, milliseconds: int) -> None:
    assert parse_moment(text) == milliseconds


def test_a_span_is_a_moment_where_one_may_say_how_long_ago() -> None:
    assert parse_moment("2h", now_ms=10_000_000) == 2_800_000
    for text in ("2h", "soon", ""):
        with pytest.raises(CommandError, match="is no time"):
            parse_moment(text)


@pytest.mark.parametrize(
    "text",
    ["9223372036854775808", "@99999999999999999999", "1969-12-31", "9" * 400 + "d", "60000d"],
)
def test_a_time_that_no_record_can_have_is_none(text: str) -> None:
    with pytest.raises(CommandError, match="is no time"):
        parse_moment(text, now_ms=1_700_000_000_000)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT5M", 300_000),
        ("P2D", 172_800_000),
        ("1.5s", 1500),
        ("15min", 900_000),
        ("250ms", 250),
    ],
)
def test_spans(text: str, milliseconds: int) -> None:
    assert parse_span(text) == milliseconds


@pytest.mark.parametrize("text", ["P", "PT", "5", "-5s", "1 week", "", "9" * 400 + "d"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(CommandError, match="is no duration"):
        parse_span(text)


def test_a_time_is_written_as_it_is_read() -> None:
    assert iso_time(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert parse_moment(iso_time(1_700_000_000_123)) == 1_700_000_000_123
    assert iso_time(-1) == "1969-12-31T23:59:59.999Z"
    assert iso_time(1 << 62) == str(1 << 62)
