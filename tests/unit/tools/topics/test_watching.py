"""Rates and growth between looks at topics, and how they are shown."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tools.topics.survey import PartitionView, TopicView
from tools.topics.watching import Look, growths, looks, watch


def topic(name: str, start: int, end: int, size: int) -> TopicView:
    partition = PartitionView(
        number=0,
        leader=1,
        replicas=(1, 2),
        in_sync=(1, 2),
        start=start,
        end=end,
        bytes=size,
        bytes_everywhere=2 * size,
    )
    return TopicView(name=name, is_internal=False, partitions=(partition,))


def look(seconds: float, *topics: TopicView) -> Look:
    return Look(monotonic_s=seconds, wall_ms=0, topics={each.name: each for each in topics})


def test_rates_are_of_the_last_span_and_growth_of_all() -> None:
    first = look(0, topic("a", 0, 100, 1000))
    last = look(2, topic("a", 0, 150, 1500))
    (now,) = growths(first, last, look(4, topic("a", 120, 250, 900)))
    assert (now.records_per_s, now.bytes_per_s) == (50, -300)
    assert (now.new_records, now.grown_bytes) == (150, -100)
    assert (now.records, now.bytes) == (130, 900)  # what was trimmed is not there any more


def test_topics_come_go_and_are_made_anew() -> None:
    first = look(0, topic("gone", 0, 9, 90), topic("anew", 0, 1000, 90))
    now = look(1, topic("anew", 0, 3, 30), topic("came", 0, 5, 50))
    found = {each.topic: each.new_records for each in growths(first, first, now)}
    assert found == {"came": 5, "anew": 3}


def test_looks_are_taken_in_time_and_as_many_as_asked_for() -> None:
    slept: list[float] = []
    seen = list(looks(lambda: [topic("a", 0, 1, 1)], 5.0, 2, slept.append))
    assert len(seen) == 3  # the first has nothing to be compared with
    assert len(slept) == 2
    assert 4 < slept[0] <= 5


def test_a_pipe_gets_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    watch(iter([look(0, topic("a", 0, 0, 0)), look(2, topic("a", 0, 3000, 10))]), as_json=False)
    (line,) = capsys.readouterr().out.splitlines()
    assert {"topic": "a", "records_per_s": 1500.0, "new_records": 3000}.items() <= json.loads(
        line
    ).items()


def test_a_terminal_is_redrawn_within_its_size(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)

    def topics(end: int) -> Sequence[Any]:
        return [topic(f"topic-{number:02}", 0, end + number, 10**6) for number in range(40)]

    watch(iter([look(0, *topics(0)), look(1, *topics(1_000_000))]), as_json=False)
    shown = capsys.readouterr().out
    assert "1,000,019" in shown
    assert "and 20 more" in shown
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()
    assert max(map(len, lines)) <= 80
