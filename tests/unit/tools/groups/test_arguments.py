"""The arguments of `pykafkalog groups`: targets, topics, files of offsets."""

import argparse
import io
from typing import Any

import pytest

from tools.chosen import chosen_places
from tools.errors import CommandError
from tools.groups.offsets_file import read_offsets, write_offsets
from tools.groups.reset_target import Kind, Target, parse_target

NOW = 1_700_000_000_000
KNOWN = {"orders": [0, 1, 2], "payments": [0]}


def target(**given: Any) -> Target:
    nothing = {"to": None, "by_duration": None, "shift_by": None, "from_file": None}
    nothing["from_group"] = None
    return parse_target(argparse.Namespace(**{**nothing, **given}), NOW)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"to": "earliest"}, Target(Kind.EARLIEST)),
        ({"to": "1200"}, Target(Kind.OFFSET, 1200)),
        ({"to": "2023-11-14T22:13:20"}, Target(Kind.TIME, NOW)),
        ({"to": f"@{NOW}"}, Target(Kind.TIME, NOW)),
        ({"to": "2023-11-14T23:13:20+01:00"}, Target(Kind.TIME, NOW)),
        ({"by_duration": "PT1H"}, Target(Kind.TIME, NOW - 3_600_000)),
        ({"by_duration": "90min"}, Target(Kind.TIME, NOW - 5_400_000)),
        ({"shift_by": -3}, Target(Kind.SHIFT, -3)),
        ({"from_file": "o.csv"}, Target(Kind.FILE)),
        ({"from_group": "billing"}, Target(Kind.GROUP)),
    ],
)
def test_targets(given: dict[str, Any], meant: Target) -> None:
    assert target(**given) == meant


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"to": "1", "shift_by": 1},
        {"to": "1", "from_group": "g"},
        {"to": "soon"},
        {"to": "-3"},
        {"by_duration": "often"},
    ],
)
def test_what_is_no_target(given: dict[str, Any]) -> None:
    with pytest.raises(CommandError):
        target(**given)


def test_topics_and_partitions() -> None:
    assert chosen_places(["orders:2,0", "payments"], KNOWN) == [
        ("orders", 0),
        ("orders", 2),
        ("payments", 0),
    ]
    for word, said in (
        ("orders:3", "orders has no partition 3, its last one is 2"),
        ("nobody", "there is no topic nobody"),
        ("orders:x", "not of the form"),
    ):
        with pytest.raises(CommandError, match=said):
            chosen_places([word], KNOWN)


def test_offsets_go_to_a_file_and_back() -> None:
    offsets = {("orders", 1): 5, ("a,b", 0): 7}
    out = io.StringIO()
    write_offsets(offsets, out)
    assert out.getvalue() == '"a,b",0,7\norders,1,5\n'
    assert read_offsets(out.getvalue().splitlines(), "g", "o.csv") == offsets


def test_kafkas_file_of_several_groups_is_read_for_one() -> None:
    lines = ['"billing","orders",0,5', "other,orders,0,6"]
    assert read_offsets(lines, "billing", "o.csv") == {("orders", 0): 5}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["orders,0,1", "orders,zero,1"], "line 2 of o.csv is not of the form"),
        (["orders,0"], "line 1 of o.csv"),
        (["a,b,orders,0,1"], "line 1 of o.csv"),
        (["orders,0,1", "orders,0,2"], "line 2 of o.csv names orders:0 once more"),
        (["other,orders,0,1"], "o.csv has no offsets of group g"),
    ],
)
def test_a_bad_line_is_named(lines: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        read_offsets(lines, "g", "o.csv")
