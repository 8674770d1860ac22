"""Three brokers replicate under faults, from seeds; more in `tests.support.replication.run`."""

import pytest

from config.form import form_that_runs
from tests.anomalies.cluster_broker import SABOTAGES
from tests.support.replication.run import Anomaly, Run, lag_run, sabotaged, zombie_run

SEEDS = (1, 2, 3, 17)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_acknowledged_record_is_lost_and_replicas_become_equal(seed: int) -> None:
    run = Run(seed, seconds=20.0).go()
    assert min(map(len, run.acknowledged.values())) > 50, "too few writes to say anything"


def test_writes_go_on_without_a_follower_that_lags() -> None:
    lag_run(1)


def test_a_leader_that_was_replaced_changes_no_isr() -> None:
    zombie_run(1)


@pytest.mark.skipif(form_that_runs() == "compiled", reason="replaces names in compiled code")
@pytest.mark.parametrize("what", sorted(SABOTAGES))
def test_a_sabotaged_build_is_found(what: str) -> None:
    with sabotaged(what), pytest.raises(Anomaly):
        for seed in range(1, 30):
            lag_run(seed)
            zombie_run(seed)
            Run(seed).go()
