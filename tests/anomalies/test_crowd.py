"""Exactly once under faults: the crowd on the real broker, and no anomaly may be found.

Bounded here; longer by PYKAFKALOG_ANOMALIES_SECONDS, from another seed by
PYKAFKALOG_ANOMALIES_SEED, both by `scripts/anomalies`.
"""

import os
from pathlib import Path

import pytest

from tests.anomalies.run import Run, RunPlan

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SECONDS = float(os.environ.get("PYKAFKALOG_ANOMALIES_SECONDS", "40"))
SEED = int(os.environ.get("PYKAFKALOG_ANOMALIES_SEED", "1"))


def test_s_txn_7_transactions_under_faults_show_no_anomaly(tmp_path: Path) -> None:
    result = Run(tmp_path, RunPlan(seed=SEED, seconds=SECONDS)).play()
    print(result.text())
    assert result.report.is_clean, result.text()
    counts, faults = result.report.counts, result.faults
    assert counts["committed"] > 2 * SECONDS, result.text()
    for kind in (
        "kill broker",
        "kill client",
        "zombie",
        "connections dropped",
        "producer id used up",
    ):
        assert faults[kind], result.text()
    for kind in ("drop answer END_TXN", "replay PRODUCE", "late PRODUCE"):
        assert faults[kind], result.text()
