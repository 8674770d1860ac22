"""This broker allows and denies what Apache Kafka 4.4.0 does, each part of each request.

The table: every API in its oldest and newest version and all its forms, about what a client has
grants for and what it has none for at once, as clients with nothing, with each operation alone,
with everything but one, and with what the API needs whole and but one. `scripts/compare-answers
--access` runs the same.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from tests.answers.access_grants import SETTINGS, GrantSet
from tests.answers.access_run import AccessComparison, compare_access
from tests.answers.pair import Pair
from tests.answers.run import Comparison

pytestmark = pytest.mark.conformance

AUDIT = re.compile(r"(Principal = .*?)(?: \(kafka\.authorizer\.logger\))?\n")
OF_NO_TOPIC = "Topic:LITERAL: for request"
"""Kafka's authorizer gets the empty name if a request has an id that no topic has."""
LISTING = "for request = DescribeTopicPartitions "
"""Kafka logs each topic that a listing leaves out (decision 99)."""


@pytest.fixture(scope="module", params=["some", "all"])
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AccessComparison, Path]]:
    """The whole table, or the clients with nothing and with what an API needs."""
    directory = tmp_path_factory.mktemp("access")

    def wanted(key: ApiKey, client: GrantSet) -> bool:
        return request.param == "all" or client.name == "nothing" or client.apis is not None

    with Pair(directory, SETTINGS) as pair:
        yield compare_access(pair, Comparison(), wanted=wanted), directory


def test_s_acl_1_the_same_is_denied(compared: tuple[AccessComparison, Path]) -> None:
    access, _ = compared
    comparison = access.comparison
    assert not comparison.findings, "\n".join(one.text() for one in comparison.findings)
    assert comparison.cases > 400
    assert comparison.same > comparison.cases // 2
    assert access.denied > comparison.cases
    assert "Traceback" not in access.pair.output()


def test_topics_were_made_and_deleted(
    compared: tuple[AccessComparison, Path],
) -> None:
    theirs, ours = compared[0].topics_made()
    assert theirs == ours


def test_s_acl_8_the_audit_logs_have_the_same(
    compared: tuple[AccessComparison, Path],
) -> None:
    access, directory = compared
    theirs = lines((directory / "kafka" / "kafka.out").read_text())
    ours = lines(access.pair.output())
    assert ours - theirs == Counter()
    more = {line for line in theirs - ours if OF_NO_TOPIC not in line}
    assert {line for line in more if LISTING not in line} == set()
    assert sum(ours.values()) > access.comparison.cases // 2


def lines(output: str) -> Counter[str]:
    """Return the denials, without those of the address of the administrator and of Kafka."""
    return Counter(line for line in AUDIT.findall(output) if "host = 127.0.0.1 " not in line)
