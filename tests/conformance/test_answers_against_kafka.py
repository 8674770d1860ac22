"""This broker answers as Apache Kafka 4.4.0 does, except for differences with a reason.

The requests are a sample of those of `scripts/compare-answers`, PYKAFKALOG_COMPARED_REQUESTS many.
"""

import os
from collections.abc import Iterator

import pytest

from tests.answers.pair import Pair
from tests.answers.run import Comparison, compare, plan, versions_of
from tests.answers.waits import CASES, compare_waits
from tests.answers.walking import WALKS, walk

pytestmark = pytest.mark.conformance

REQUESTS = int(os.environ.get("PYKAFKALOG_COMPARED_REQUESTS", "500"))
SEED = 1


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(tmp_path_factory.mktemp("pair")) as both:
        yield both


def test_single_requests(pair: Pair) -> None:
    cases = plan(versions_of(pair), SEED, REQUESTS)
    comparison = Comparison()
    compare(pair, cases, comparison)
    check(comparison, at_least=REQUESTS * 9 // 10)
    assert "Traceback" not in pair.output()


@pytest.mark.parametrize("name", list(WALKS))
def test_walks(pair: Pair, name: str) -> None:
    comparison = Comparison()
    for seed in range(3):
        walk(pair, comparison, name, seed, 60)
    check(comparison, at_least=3 * 60)


def test_s_read_6_what_comes_at_once_and_what_waits(pair: Pair) -> None:
    comparison = Comparison()
    compare_waits(pair, comparison)
    check(comparison, at_least=len(CASES))


def check(comparison: Comparison, *, at_least: int) -> None:
    assert not comparison.findings, "\n".join(one.text() for one in comparison.findings)
    assert comparison.cases >= at_least
    assert comparison.same > comparison.cases // 2
