"""The simulation itself: the same seed is the same run, a few seeds are clean, and the fault of a
sabotaged broker is found. `scripts/simulate` runs thousands of seeds."""

import os
import subprocess
import sys

import pytest

from tests.anomalies.sabotage import WANTED
from tests.simulation.plan import Kind, drawn
from tests.simulation.run import Result, simulate
from tests.simulation.sabotage import ALL_SABOTAGES
from tests.simulation.shrink import shrunk, smaller_plans

SEEDS = int(os.environ.get("PYKAFKALOG_SIMULATION_SEEDS", "150"))
FOUND_WITHIN = 120
"""The number of seeds; the first finds most sabotages."""

_DIGESTS = """
import sys
from tests.simulation.plan import drawn
from tests.simulation.run import simulate
print(*(simulate(drawn(int(seed))).digest for seed in sys.argv[1:]))
"""


def digests(seeds: list[int], hash_seed: str) -> list[str]:
    """Return the digests of runs in a process of their own, whose sets have another order."""
    words = [sys.executable, "-W", "ignore", "-c", _DIGESTS, *map(str, seeds)]
    done = subprocess.run(
        words,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return done.stdout.split()


def test_the_same_seed_is_the_same_run_byte_for_byte() -> None:
    seeds = [1, 2, 3, 5, 8]
    here = [simulate(drawn(seed)).digest for seed in seeds]
    assert len(set(here)) == len(seeds)
    assert digests(seeds, "1") == here
    # Nor does it matter what ran before in the process.
    assert digests(seeds[::-1], "2") == here[::-1]


def test_a_trace_has_the_events_and_changes_nothing() -> None:
    plan = drawn(3)
    told = simulate(plan, keep_trace=True)
    assert told.digest == simulate(plan).digest
    text = "\n".join(told.trace)
    for word in ("life 1 begins", "> PRODUCE", "< END_TXN", "txn ok", "final ok"):
        assert word in text


def test_seeds_differ_in_what_befalls_the_broker() -> None:
    plans = [drawn(seed) for seed in range(300)]
    assert {event.kind for plan in plans for event in plan.events} == set(Kind)
    assert {plan.is_durable for plan in plans} == {True, False}
    assert drawn(7) == drawn(7) != drawn(8)


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_few_seeds_show_nothing(seed: int) -> None:
    result = simulate(drawn(seed))
    assert result.is_clean, result.text()
    assert result.lives >= 1


@pytest.mark.slow
def test_hundreds_of_seeds_show_nothing() -> None:
    committed = 0
    for seed in range(1000, 1000 + SEEDS):
        result = simulate(drawn(seed))
        assert result.is_clean, f"scripts/simulate --seed {seed} --shrink\n{result.text()}"
        committed += result.report.counts["committed"]
    assert committed > 10 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL_SABOTAGES)
def test_a_sabotaged_broker_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ALL_SABOTAGES[kind](monkeypatch.setattr)
    wanted = WANTED.get(kind)
    others = []
    for seed in range(1, FOUND_WITHIN + 1):
        result = simulate(drawn(seed))
        anomalies = {finding.anomaly for finding in result.report.findings}
        if result.problems or (anomalies if wanted is None else wanted & anomalies):
            return
        if not result.is_clean:
            others.append(result.text())
    raise AssertionError("\n".join([f"{kind} was not found in {FOUND_WITHIN} seeds", *others]))


def test_a_failing_plan_is_made_smaller_as_long_as_it_fails() -> None:
    plan = drawn(2)
    name = plan.crowd[0].name

    def fails(smaller: object) -> bool:
        return any(member.name == name for member in smaller.crowd)  # type: ignore[attr-defined]

    least = shrunk(plan, fails)
    assert [member.name for member in least.crowd] == [name]
    assert (least.events, dict(least.chances), least.last_restart) == ((), {}, None)
    assert all(not fails(smaller) or smaller.seconds == 0 for smaller in smaller_plans(least))


def test_a_smaller_plan_still_runs() -> None:
    plan = drawn(2)
    for smaller in list(smaller_plans(plan))[:3]:
        result: Result = simulate(smaller)
        assert result.is_clean, result.text()
