"""The results of a run: rates by interval, exact percentiles, JSON and lines."""

import json
from pathlib import Path

import pytest

from tools.errors import CommandError
from tools.perf.measure import Measure
from tools.perf.plot import draw, require_plot
from tools.perf.producing import payloads
from tools.perf.report import lines, spark
from tools.perf.results import Result, result_of


def run_of_three_seconds() -> Measure:
    measure = Measure(100.0)
    for latency in range(1, 1001):
        measure.note(1, 10)
        measure.note_ms(float(latency))
    assert measure.tick(100.5) is None
    assert measure.tick(101.0) is not None
    for latency in (5.0, 7.0):
        measure.note(1, 10)
        measure.note_ms(latency)
    assert measure.tick(103.0) is not None
    measure.note(8, 80)
    return measure


def result() -> Result:
    return result_of(
        run_of_three_seconds(), test="produce", topic="t", settings={"size": 10}, ended=104.0
    )


def test_rates_and_percentiles() -> None:
    found = result()
    assert (found.records, found.size, found.seconds) == (1010, 10_100, 4.0)
    assert found.records_per_s == 252.5
    assert found.latency_ms["max"] == 1000
    assert found.latency_ms["p50"] == 499, "two small ones came later"
    assert found.latency_ms["p99"] == pytest.approx(990, abs=1)
    assert list(found.latency_ms) == ["mean", "p50", "p95", "p99", "p99.9", "max"]


def test_each_interval_has_its_own() -> None:
    first, second, third = result().timeline
    assert (first.end_s, first.records_per_s, first.p50_ms, first.max_ms) == (1, 1000, 500, 1000)
    assert (second.end_s, second.records_per_s, second.p50_ms, second.max_ms) == (3, 1, 5, 7)
    assert (third.end_s, third.records_per_s, third.p50_ms) == (4, 8, None)


def test_json_has_plain_numbers() -> None:
    document = json.loads(json.dumps(result().as_json()))
    assert document["records_per_second"] == 252.5
    assert document["timeline"][1]["p99_ms"] == 7
    assert document["settings"] == {"size": 10}


def test_what_is_no_terminal_gets_no_picture() -> None:
    plain = "\n".join(lines(result(), picture=False))
    assert plain.splitlines()[0] == "1010 records, 10100 B in 4.00 s"
    assert plain.isascii()
    picture = list(lines(result(), picture=True))
    assert max(map(len, picture)) <= 80
    assert any("█" in line for line in picture)


def test_a_spark_fits_whatever_the_length() -> None:
    assert spark([0.0, 50.0, 100.0]) == "▁▅█"
    assert spark([0.0]) == "▁"
    assert len(spark([1.0] * 10_000)) == 30


def test_nothing_measured_is_no_error() -> None:
    found = result_of(Measure(1.0), test="consume", topic="t", settings={}, ended=1.0)
    assert found.records_per_s == 0
    assert found.latency_ms == {}
    assert list(lines(found, picture=True))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_payloads_have_the_size(size: int) -> None:
    assert {len(value) for value in payloads(size)} == {size}


@pytest.mark.parametrize("name", ["x.txt", "x", "nowhere/x.svg"])
def test_a_picture_that_cannot_be_is_refused_before_the_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError):
        require_plot(tmp_path / name)


def test_it_is_drawn(tmp_path: Path) -> None:
    for name, head in (("x.svg", b"<?xml"), ("x.png", b"\x89PNG")):
        path = tmp_path / name
        require_plot(path)
        draw(result(), path)
        assert path.read_bytes().startswith(head)
