"""Which tests run when, side by side or alone. The marks are set here, by path, in one place.

    scripts/test          what is unmarked, and `integration` and `conformance`
    scripts/test --long   the rest: `slow`, `crash`, `hostile`

`tests/meta/test_readme_claims.py` holds that every claim of the README is proven by the first.
"""

from collections.abc import Iterable
from typing import Final

import pytest

LONG: Final = ()
"""Beginnings of the ids of tests that are `slow`, beside those that say so themselves."""

ALONE: Final = (
    "tests/hostile/",  # a good client is answered within 250 ms, and memory comes back
    "tests/whole/test_every_api_is_bounded.py",  # turns of the event loop, in processor time
    "tests/fuzz/",  # the same
    "tests/integration/test_bad_input.py",  # how long a good client waits
    "tests/conformance/test_answers_against_kafka.py::test_s_read_6",  # at once, or after a wait
)
"""Beginnings of the ids of tests that other work on this machine would falsify."""

REAL: Final = ("tests/integration/", "tests/conformance/", "tests/crash/", "tests/anomalies/")
"""Folders whose files have brokers, JVMs and sessions of Spark that all tests of a file share."""

SPARK: Final = (
    "tests/integration/test_client_spark.py",
    "tests/integration/test_pipeline_stats.py",
    "tests/integration/test_source_spark.py",
    "tests/integration/test_source_streams.py",
)
"""Files that share one JVM and one session of Spark."""

FIRST: Final = ()
"""Files that take longest, so that none of them begins when the others have ended."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Set the marks of all tests that were collected."""
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(ALONE):
            item.add_marker(pytest.mark.alone)
        if item.nodeid.startswith(REAL):
            file = item.nodeid.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group("spark" if file in SPARK else file))


def in_order(items: list[pytest.Item]) -> None:
    """Put the longest files first, and those of a group beside each other."""

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return FIRST.index(file) if file in FIRST else len(FIRST)

    items.sort(key=place)
