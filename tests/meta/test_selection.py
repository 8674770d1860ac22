"""What `tests/selection.py` names is there."""

import re

import pytest

from tests.selection import ALONE, FIRST, LONG, RELEASE, SPARK
from tests.support.installation import ROOT


@pytest.mark.parametrize("name", sorted({*ALONE, *FIRST, *LONG, *RELEASE, *SPARK}))
def test_it_names_tests_that_are_there(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).exists()
    if test:
        function = test.partition("[")[0]
        assert re.search(rf"^def {function}", (ROOT / path).read_text(), re.MULTILINE)
