"""The tests that `tests/selection.py` and `tests/unsteady.toml` name exist."""

import re

import pytest

from tests.selection import ALONE, FIRST, LONG, SPARK, SPARK_TESTS, unsteady_tests
from tests.support.installation import ROOT

MOST_UNSTEADY = 8


@pytest.mark.parametrize("name", sorted({*ALONE, *FIRST, *LONG, *SPARK, *SPARK_TESTS}))
def test_it_names_tests_that_are_there(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).exists()
    if test:
        function = test.partition("[")[0]
        assert re.search(rf"^def {function}", (ROOT / path).read_text(), re.MULTILINE)


def test_few_tests_are_set_aside_and_each_with_what_is_known() -> None:
    entries = unsteady_tests()
    assert len(entries) <= MOST_UNSTEADY
    for entry in entries:
        assert set(entry) == {"test", "since", "known", "waits"}
        assert all(entry.values())
        test_it_names_tests_that_are_there(entry["test"])
