"""A restore reports the rows that this run has sent, not those of the table."""

import argparse

import pytest

from pipeline.restore.command import _show
from pipeline.restore.job import SendJob
from pipeline.restore.restoring import Extent, Outcome, outcomes_of
from pipeline.restore.sending import Sent

FOUND = [Extent("a", 0, 100, 5, 200), Extent("a", 1, 10, 0, 9)]


def test_a_partition_without_rows_left_has_sent_nothing() -> None:
    outcomes = outcomes_of(FOUND, {("a", 0): 201, ("a", 1): 10}, [])
    assert [(one.sent, one.rows, one.next_before, one.next_now) for one in outcomes] == [
        (0, 100, 201, 201),
        (0, 10, 10, 10),
    ]


def test_rows_that_an_attempt_of_this_run_had_sent_count() -> None:
    outcomes = outcomes_of(FOUND, {("a", 0): 7, ("a", 1): 10}, [Sent("a", 0, 40, 58, 201)])
    assert outcomes[0] == Outcome("a", 0, 98, 100, 5, 200, 7, 201)
    assert outcomes[1].sent == 0


def told(outcomes: list[Outcome], capsys: pytest.CaptureFixture[str], **more: bool) -> str:
    args = argparse.Namespace(**{"table": "/lake/a", "json": False, **more})
    _show(args, SendJob("restore-1", "somewhere:1"), outcomes)
    return capsys.readouterr().out


def test_nothing_to_send_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = outcomes_of(FOUND, {("a", 0): 201, ("a", 1): 10}, [])
    assert told(outcomes, capsys) == (
        "nothing to send: the 110 rows of /lake/a were sent (group restore-1)\n"
    )
    printed = told(outcomes, capsys, json=True)
    assert '"sent": 0, "rows": 100' in printed


def test_one_row_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = outcomes_of(FOUND, {("a", 0): 201, ("a", 1): 9}, [Sent("a", 1, 1, 0, 10)])
    assert told(outcomes, capsys).splitlines() == [
        "topic\tpartition\tsent\tof rows\tfirst\tlast\tnext before\tnext now",
        "a\t0\t0\t100\t5\t200\t201\t201",
        "a\t1\t1\t10\t0\t9\t9\t10",
    ]
