"""Apache Kafka's LogCleanerManager and this planner find the same part of a log due.

Checkpoints are right, absent, below the log start or above its end; transactions are open; there
are compaction lags.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from storage.cleaner.planner import LogFacts, cleanable_extent, judge
from storage.log.log import Log
from storage.waits import at_once
from tests.support.cleaning_duel import NAME
from tests.support.compaction_histories import DAY_MS, CompactionHistory, HistoryWriter
from tests.support.kafka_cleaner import KafkaCleaner

pytestmark = pytest.mark.conformance

FIRST, END = (int(part) for part in os.environ.get("CLEANING_SEEDS", "0:10").split(":"))
QUESTIONS = 6


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCleaner]:
    with KafkaCleaner(tmp_path_factory.mktemp("oracle")) as oracle:
        yield oracle


def ask(kafka: KafkaCleaner, history: CompactionHistory, directory: Path, now_ms: int) -> None:
    """Draw one question by the history's seed, and ask both."""
    rng = history.rng
    log = history.load(directory, now_ms)
    first, end = log.segments.first.base_offset, log.log_end_offset
    at_once(log.close())
    start = rng.choice((first, rng.randint(first, end)))
    checkpoint = rng.choice((None, start, start - 1, rng.randint(first, end), end, end + 1))
    history.config = replace(
        history.config,
        min_compaction_lag_ms=rng.choice((0, 0, 1000, DAY_MS)),
        max_compaction_lag_ms=rng.choice((2**63 - 1, DAY_MS, 2 * DAY_MS)),
    )
    answer = kafka.plan(
        directory, history.config, now_ms=now_ms, checkpoint=checkpoint, log_start=start
    )
    log = history.load(directory, now_ms, log_start_offset=start)
    # A transaction that began below the log start keeps the log unstable. If the log start lies in
    # a hole, Kafka returns the next offset that exists.
    assert log.last_stable_offset in (answer["lastStableOffset"], start)
    facts = facts_of(log, checkpoint, now_ms, answer["lastStableOffset"])
    extent, verdict = at_once(cleanable_extent(facts)), at_once(judge(facts))
    at_once(log.close())
    ours = {
        "firstDirty": extent.first_dirty_offset,
        "firstUncleanable": extent.first_uncleanable_offset,
        "cleanBytes": extent.clean_bytes,
        "cleanableBytes": extent.cleanable_bytes,
        "totalBytes": extent.total_bytes,
        "forceUpdateCheckpoint": extent.reset is not None,
        "delayMs": verdict.delay_ms,
    }
    assert ours == {name: answer[name] for name in ours}, f"{history} {facts} {verdict} {answer}"


def facts_of(log: Log, checkpoint: int | None, now_ms: int, last_stable: int) -> LogFacts:
    return LogFacts(
        segments=list(log.segments),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=last_stable,
        checkpointed=checkpoint,
        config=log.config,
        now_ms=now_ms,
    )


@pytest.mark.parametrize("seed", range(FIRST, END))
def test_s_cmp_2_the_same_part_is_due(kafka: KafkaCleaner, tmp_path: Path, seed: int) -> None:
    history = CompactionHistory(seed)
    writer = HistoryWriter(history)
    directory = tmp_path / NAME
    directory.mkdir()
    for turn in history.turns():
        writer.extend(directory, turn)
        for number in range(QUESTIONS):
            copy = tmp_path / str(number) / NAME
            shutil.copytree(directory, copy)
            ask(kafka, history, copy, turn.now_ms)
            shutil.rmtree(copy)
        history.config = replace(
            history.config, min_compaction_lag_ms=0, max_compaction_lag_ms=2**63 - 1
        )
