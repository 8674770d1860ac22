"""`pykafkalog explain-cleaner`: a sentence for each reason."""

import pytest

from storage.cleaner.planner import (
    ActiveSegmentOnly,
    CleanerDisabled,
    InProgress,
    LagNotOver,
    NotCompacted,
    NothingDirty,
    NotReplicated,
    OpenTransaction,
    Paused,
    RatioBelow,
    Reason,
    Uncleanable,
)
from tools.explain_cleaner import sentence

NOW = 10_000_000


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (CleanerDisabled(), "switched off (log.cleaner.enable"),
        (NotCompacted(policy=frozenset({"delete"})), "cleanup.policy=delete has no compact"),
        (Uncleanable(why="corrupt batch: x"), "given it up: corrupt batch: x"),
        (InProgress(aborted=False), "a cleaner is at it"),
        (Paused(times=1), "held back"),
        (NothingDirty(), "nothing was written since the last cleaning"),
        (RatioBelow(ratio=0.125, wanted=0.5, due_at_ms=None), "12% of it are dirty; more than 50%"),
        (
            RatioBelow(ratio=0.125, wanted=0.5, due_at_ms=NOW + 3_600_000),
            "wanted, or in 1 h: max.compaction.lag.ms",
        ),
        (
            ActiveSegmentOnly(
                base_offset=7, size=2_000, segment_bytes=1_000_000, segment_ms=86_400_000
            ),
            "from 7 on it is the active segment (2.0 KB of 1.0 MB)",
        ),
        (LagNotOver(base_offset=5, until_ms=NOW + 60_000), "at 5 has records too young in 1 min"),
        (NotReplicated(first_offset=9), "from 9 on it is not replicated"),
        (
            OpenTransaction(producer_id=41, first_offset=12, since_ms=NOW - 90_000),
            "from 12 on it waits for the open transaction of producer 41 for 1 min 30 s, since",
        ),
        (OpenTransaction(producer_id=41, first_offset=12), "of producer 41"),
    ],
)
def test_a_sentence_for_each_reason(reason: Reason, said: str) -> None:
    assert said in sentence(reason, NOW)
