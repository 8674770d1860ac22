import logging

import pytest

from broker.security.authentication.limited_lines import LINES, LINES_PERIOD_S, LimitedLines
from tests.support.manual_clock import ManualClock


def test_a_flood_is_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    lines = LimitedLines(clock)
    for n in range(1000):
        lines.info("line %d", n)
    assert [record.getMessage() for record in caplog.records] == [f"line {n}" for n in range(LINES)]
    caplog.clear()
    clock.advance(LINES_PERIOD_S)
    lines.info("later")
    assert [record.getMessage() for record in caplog.records] == [
        f"{1000 - LINES} more lines about connections were left out",
        "later",
    ]
