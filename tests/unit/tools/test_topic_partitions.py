"""Partitions by the patterns of kafka-get-offsets.sh."""

import pytest

from tools.errors import CommandError
from tools.log_ends import Place
from tools.topic_partitions import matching, parse_rules, rule_of

KNOWN = {"orders": [0, 1, 2, 3], "old-orders": [0], "__consumer_offsets": [0, 1]}


def numbers(places: list[Place], topic: str = "orders") -> list[int]:
    return [number for name, number in places if name == topic]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", [0, 1, 2, 3]),
        ("orders:", [0, 1, 2, 3]),
        ("orders:-", [0, 1, 2, 3]),
        ("orders:2", [2]),
        ("orders:1-3", [1, 2]),
        ("orders:0-1", [0]),
        ("orders:3-", [3]),
        ("orders:-2", [0, 1]),
        ("orders:0,orders:2-9", [0, 2, 3]),
        (".*:0", [0]),
        (":1", [1]),
    ],
)
def test_partitions_of_a_topic(text: str, expected: list[int]) -> None:
    assert numbers(matching(parse_rules(text), KNOWN)) == expected


def test_a_topic_is_matched_whole_by_a_regular_expression() -> None:
    assert matching(parse_rules("o.*:0"), KNOWN) == [("old-orders", 0), ("orders", 0)]
    assert matching([rule_of("orders", None)], KNOWN) == [("orders", n) for n in range(4)]
    assert matching([rule_of("old.*,__c.*", "0,7")], KNOWN) == [
        ("__consumer_offsets", 0),
        ("old-orders", 0),
    ]
    assert len(matching([rule_of(None, None)], KNOWN)) == 7


@pytest.mark.parametrize("text", ["orders:3-3", "orders:4", "order", "orders:9-"])
def test_nothing_that_matches_is_told(text: str) -> None:
    with pytest.raises(CommandError, match="no partition matches"):
        matching(parse_rules(text), KNOWN)


@pytest.mark.parametrize("text", ["orders:a", "a:b:c", "orders:1-2-3", "("])
def test_what_is_no_pattern_is_told(text: str) -> None:
    with pytest.raises(CommandError):
        parse_rules(text)
    with pytest.raises(CommandError):
        rule_of("(", None)
    with pytest.raises(CommandError, match="--partitions 1-2"):
        rule_of(None, "1-2")
