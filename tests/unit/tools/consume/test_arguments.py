"""Topics, partitions, filters and bounds as typed."""

import argparse
from typing import Any

import pytest

from tools.consume.bounds import Bound, Kind, Range, parse_offset, parse_until, resolve
from tools.consume.filters import parse_filters
from tools.consume.reading import _start
from tools.consume.topics import chosen_partitions, chosen_topics, parse_numbers
from tools.errors import CommandError
from tools.moments import parse_moment
from tools.records.record import Record

KNOWN = {"orders": [0, 1], "old-orders": [0], "__consumer_offsets": [0]}
NOW = 1_700_000_000_000
A, B = ("orders", 0), ("orders", 1)


class FakeEnds:
    """A broker with two partitions."""

    def firsts(self, places: Any) -> Any:
        return {A: 10, B: 0}

    def ends(self, places: Any) -> Any:
        return {A: 30, B: 100}

    def at_time(self, places: Any, timestamp_ms: int) -> Any:
        return {A: 15, B: 16}


def ranges(start: Bound, until: Bound | None = None) -> dict[Any, Range]:
    return resolve(FakeEnds(), [A, B], start, until)  # type: ignore[arg-type]


def test_topics_by_name_and_pattern() -> None:
    assert chosen_topics(["^o", "orders"], KNOWN) == ["old-orders", "orders"]
    assert chosen_topics(["^.*"], KNOWN) == ["old-orders", "orders"]
    assert chosen_topics(["^__"], KNOWN) == ["__consumer_offsets"]
    for word, said in (
        ("new", "there is no topic new"),
        ("^x", "no topic matches"),
        ("^(", "regular"),
    ):
        with pytest.raises(CommandError, match=said):
            chosen_topics([word], KNOWN)


def test_partitions() -> None:
    assert parse_numbers("0,2-4") == [0, 2, 3, 4]
    assert chosen_partitions(["orders"], [1], KNOWN) == [B]
    with pytest.raises(CommandError, match="orders has no partition 2, its last one is 1"):
        chosen_partitions(["orders"], [2], KNOWN)
    assert parse_numbers("2-2,1,1000000") == [1, 2, 1000000]
    for text in ("", "a", "a-1", "1-a", "-1", "1-", "1-2-3", "1,,2", "1000001", "1-1000001"):
        with pytest.raises(CommandError, match="numbers, as 0 or"):
            parse_numbers(text)
    with pytest.raises(CommandError, match="--partition 0,3-2: 3-2 holds no partition"):
        parse_numbers("0,3-2")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("key=a", True),
        ("key=", False),
        ("key!=a", False),
        ("value~^b+$", True),
        ("value!~b", False),
        ("header.h=1", True),
        ("header.x is null", True),
        ("header.h is not null", True),
        ("key is null", False),
    ],
)
def test_filters(text: str, kept: bool) -> None:
    record = Record(key=b"a", value=b"bb", headers=(("h", b"0"), ("h", b"1")))
    assert parse_filters([text])(record) is kept


def test_null_matches_nothing_and_filters_add_up() -> None:
    assert not parse_filters(["key~"])(Record())
    assert not parse_filters(["key=null"])(Record())
    assert parse_filters(["key is null", "value=a"])(Record(value=b"a"))
    assert not parse_filters(["key is null", "value=b"])(Record(value=b"a"))
    for text in ("a", "keys=a", "key~(", "key is nothing"):
        with pytest.raises(CommandError):
            parse_filters([text])


def test_arguments_that_set_the_beginning() -> None:
    for text, bound, starts in (
        ("earliest", Bound(Kind.FIRST), (10, 0)),
        ("end", Bound(Kind.END), (30, 100)),
        ("12", Bound(Kind.OFFSET, 12), (12, 12)),
        ("-25", Bound(Kind.BACK, 25), (10, 75)),
    ):
        assert parse_offset(text) == bound
        assert ranges(bound) == {A: Range(starts[0], None), B: Range(starts[1], None)}
    assert ranges(Bound(Kind.TIME, 1))[A].start == 15
    with pytest.raises(CommandError, match="--offset soon"):
        parse_offset("soon")


@pytest.mark.parametrize("offset", [9, 31])
def test_an_offset_outside_of_a_log_names_the_range(offset: int) -> None:
    with pytest.raises(CommandError, match=f"orders:0 has offsets 10 to 30, not {offset}"):
        ranges(Bound(Kind.OFFSET, offset))


def test_arguments_that_set_the_end() -> None:
    first = Bound(Kind.FIRST)
    assert ranges(first, parse_until("end", NOW))[B] == Range(0, 100)
    assert ranges(first, parse_until("5", NOW)) == {A: Range(10, 5), B: Range(0, 5)}
    assert ranges(first, parse_until("5", NOW))[A].is_empty
    assert ranges(first, parse_until("2h", NOW))[A] == Range(10, 15)
    assert parse_until(f"@{NOW}", NOW) == Bound(Kind.TIME, NOW)
    assert ranges(first, parse_until("30", NOW)) == {A: Range(10, 30), B: Range(0, 30)}
    assert ranges(first, parse_until("31", NOW)) == {A: Range(10, 30), B: Range(0, 31)}
    with pytest.raises(CommandError, match="lies ahead"):
        parse_until("2099-01-01", NOW)


@pytest.mark.parametrize("text", ["@1600000000000", "2020-09-13T12:26:40", "2h"])
def test_a_time_is_written_in_one_way_where_reading_begins_and_ends(text: str) -> None:
    moment = parse_moment(text, NOW)
    assert parse_until(text, NOW) == Bound(Kind.TIME, moment)
    args = argparse.Namespace(offset=None, from_timestamp=text)
    assert _start(args, NOW) == Bound(Kind.TIME, moment)


def test_an_end_beyond_every_log_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ranges(Bound(Kind.FIRST), parse_until("100", NOW))
    assert not capsys.readouterr().err
    found = ranges(Bound(Kind.FIRST), parse_until("1600000000000", NOW))
    assert found == {A: Range(10, 30), B: Range(0, 100)}
    said = capsys.readouterr().err
    assert "--until 1600000000000 is an offset beyond the end of every log (orders:1 ends" in said
    assert "a time in milliseconds is --until @1600000000000" in said
