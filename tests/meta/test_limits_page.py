"""`docs/limits.md` says what holds: every API has its row, with the number that the code has."""

import re
from pathlib import Path

import pytest

from broker.api_facts import MOST_OF_BROKERS
from broker.network.large_messages import ELEMENTS_AT_ONCE, MAX_REPLY_BYTES, UNSENT_BYTES
from broker.registry import APIS, cluster_apis
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS
from protocol.schema.parse_code import MAX_ELEMENTS, SMALL_ELEMENTS
from tests.support.largest_requests import arrays

ALL = APIS | cluster_apis()
PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
ROW = re.compile(r"^\| (\w+) \| ([\d,]+|–) \|", re.MULTILINE)


def limit(key: ApiKey) -> str:
    if not arrays(key, ALL[key].versions[1]):
        return "–"
    return f"{ALL[key].most_elements:,}"


def test_every_api_has_a_row_with_its_limit() -> None:
    assert dict(ROW.findall(PAGE)) == {SPECS[key].message: limit(key) for key in ALL}


RULES = re.sub(r"\s+", " ", PAGE.partition("## The rules")[2].partition("\n## ")[0])


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("Up to {} elements are parsed, handled and answered in one go", SMALL_ELEMENTS),
        ("limit (the table; {} where none is named) the connection is closed", MAX_ELEMENTS),
        (
            "A controller may tell a broker of {} in one LeaderAndIsr or UpdateMetadata",
            MOST_OF_BROKERS,
        ),
        ("All large requests in work have {} elements together", ELEMENTS_AT_ONCE),
        ("A reply has at most {} MiB, or its connection is closed", MAX_REPLY_BYTES >> 20),
        ("while at most {} MiB of such replies wait for their clients", UNSENT_BYTES >> 20),
    ],
)
def test_the_rules_have_the_numbers_of_the_code(sentence: str, number: int) -> None:
    assert sentence.format(f"{number:,}") in RULES
