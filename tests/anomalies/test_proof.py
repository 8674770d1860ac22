"""The proof of the checker: on brokers without a guarantee the same workload must find it missing.

Each run ends as soon as the anomaly is found: after 1 to 20 s, by the luck of a zombie's timing.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from tests.anomalies.checker import check
from tests.anomalies.faults.nemesis import NemesisPlan
from tests.anomalies.faults.plan import NO_FAULTS, Fault, FaultPlan
from tests.anomalies.findings import Anomaly
from tests.anomalies.history import read_history
from tests.anomalies.run import Run, RunPlan
from tests.anomalies.sabotage import WANTED, command
from tests.anomalies.workload.crowd import (
    COPIERS,
    MODERN_SENDERS,
    OLDER_SENDERS,
    SENDERS_AND_READERS,
    Member,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FOUND_WITHIN_S = 120
"""The end of a run that finds nothing."""
_LOOK_EVERY_S = 1.0
_UNSETTLED_NS = 300_000_000
"""Events of the last moment may not all be written yet."""

QUIET = NemesisPlan(weights={})
ZOMBIES = NemesisPlan(between_s=(0.2, 0.6), weights={"zombie": 1})
KILLS = NemesisPlan(between_s=(0.5, 1.0), weights={"kill client": 1})
LOST_ANSWERS = FaultPlan(chances={Fault.DROP_ANSWER: 0.1, Fault.REPLAY: 0.1})
REPEATED_ENDS = FaultPlan(
    chances={Fault.REPLAY: 0.5},
    keys=(ApiKey.END_TXN,),
    may_repeat=lambda request: True,
    longest_s=0.3,
)


class UntilFound:
    """Checks the history from time to time; ends the run when a wanted anomaly is found."""

    def __init__(self, wanted: frozenset[Anomaly]) -> None:
        self._wanted = wanted
        self._next = 0.0
        self.found: set[Anomaly] = set()
        self.text = ""

    def __call__(self, run: Run, left_s: float) -> bool:
        now = time.monotonic_ns()
        if now / 1e9 < self._next:
            return True
        self._next = now / 1e9 + _LOOK_EVERY_S
        settled = [e for e in read_history(run.history) if e.time < now - _UNSETTLED_NS]
        report = check(settled)
        self.found, self.text = set(report.kinds), report.text()
        return not self.is_satisfied

    @property
    def is_satisfied(self) -> bool:
        """Whether a wanted anomaly was found."""
        return bool(self.found & self._wanted)


@pytest.mark.parametrize(
    ("kind", "crowd", "faults", "nemesis"),
    [
        ("fencing", SENDERS_AND_READERS, NO_FAULTS, ZOMBIES),
        ("takeover", SENDERS_AND_READERS, NO_FAULTS, ZOMBIES),
        ("lso", SENDERS_AND_READERS, NO_FAULTS, QUIET),
        ("aborted", SENDERS_AND_READERS, NO_FAULTS, QUIET),
        ("reaching-in", SENDERS_AND_READERS, NO_FAULTS, QUIET),
        ("spanning", SENDERS_AND_READERS, NO_FAULTS, QUIET),
        ("offsets", COPIERS, NO_FAULTS, QUIET),
        ("duplicates", SENDERS_AND_READERS, LOST_ANSWERS, QUIET),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_checker_finds_what_a_sabotaged_broker_lacks(
    tmp_path: Path,
    kind: str,
    crowd: Sequence[Member],
    faults: FaultPlan,
    nemesis: NemesisPlan,
) -> None:
    plan = RunPlan(
        seed=1,
        seconds=FOUND_WITHIN_S,
        crowd=crowd,
        faults=faults,
        nemesis=nemesis,
        broker_command=command(kind),
        worn=False,
        to_the_end=False,
    )
    watch = UntilFound(WANTED[kind])
    Run(tmp_path, plan).play(watch)
    print(watch.text)
    assert watch.is_satisfied, watch.text


@pytest.mark.parametrize(
    ("crowd", "faults", "nemesis"),
    [
        (SENDERS_AND_READERS, NO_FAULTS, ZOMBIES),
        (SENDERS_AND_READERS, LOST_ANSWERS, QUIET),
        (COPIERS, NO_FAULTS, KILLS),
    ],
    ids=("zombies", "lost answers", "killed copiers"),
)
def test_the_same_runs_on_the_real_broker_show_nothing(
    tmp_path: Path, crowd: Sequence[Member], faults: FaultPlan, nemesis: NemesisPlan
) -> None:
    plan = RunPlan(seed=1, seconds=6, crowd=crowd, faults=faults, nemesis=nemesis)
    result = Run(tmp_path, plan).play()
    assert result.report.is_clean, result.text()
    counts = result.report.counts
    assert counts["committed"] > 20, result.text()
    # Copiers that end before they commit show nothing, either.
    assert crowd is not COPIERS or counts["with offsets"] > 0, result.text()


def test_a_repeated_end_of_an_older_transaction_ends_the_next_one(tmp_path: Path) -> None:
    """The older protocol does not prevent it, here as in Kafka: the reason for KIP-890."""
    watch = UntilFound(frozenset((Anomaly.ABORTED_READ, Anomaly.UNCOMMITTED_READ)))
    plan = RunPlan(
        seed=1,
        seconds=FOUND_WITHIN_S,
        crowd=OLDER_SENDERS,
        faults=REPEATED_ENDS,
        nemesis=QUIET,
        to_the_end=False,
    )
    Run(tmp_path, plan).play(watch)
    print(watch.text)
    assert watch.is_satisfied, watch.text


def test_a_repeated_end_of_a_version_2_transaction_is_fenced(tmp_path: Path) -> None:
    plan = RunPlan(seed=1, seconds=6, crowd=MODERN_SENDERS, faults=REPEATED_ENDS, nemesis=QUIET)
    result = Run(tmp_path, plan).play()
    assert result.report.is_clean, result.text()
    # A repetition that comes before the next transaction begins is answered with NONE.
    fenced = result.repeats["END_TXN v5: PRODUCER_FENCED"]
    assert fenced > 30 and fenced > result.repeats.total() / 2, result.text()
