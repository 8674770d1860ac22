"""`pykafkalog explain-cleaner`: a sentence for each reason, and what it says of a directory."""

import json
from pathlib import Path

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
from storage.waits import at_once
from tests.support.command_line import Command
from tests.support.compacted_log import CompactedLog
from tests.support.readable_directory import write_files
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


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """`t-0`: a value, a later one of its key, a tombstone; then the active segment."""
    log = CompactedLog()
    log.put((b"a", b"1"), (b"b", b"2"))
    log.put((b"a", b"3"), (b"b", None))
    log.log.roll()
    log.put((b"c", b"4"))
    at_once(log.stopped().close())
    write_files(log, tmp_path / "t-0")
    return tmp_path


def explained(command: Command, *words: str) -> list[dict[str, object]]:
    policy = ("--config", "cleanup.policy=compact")
    printed = command("explain-cleaner", "--json", *policy, *words)
    return [json.loads(line) for line in printed.out.splitlines()]


def test_a_directory_is_due_or_tells_why_not(log_dir: Path, command: Command) -> None:
    (found,) = explained(command, str(log_dir))
    assert (found["partition"], found["is_due"]) == ("t-0", True)
    assert (found["first_dirty_offset"], found["first_uncleanable_offset"]) == (0, 4)
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    (found,) = explained(command, str(log_dir))
    assert (found["is_due"], found["cleaner_checkpoint"]) == (False, 4)
    assert [reason["kind"] for reason in found["reasons"]] == ["ActiveSegmentOnly"]
    assert "cleanup.policy=delete has no compact" in command("explain-cleaner", log_dir).out


def test_the_dry_run_counts_and_names_each_record(log_dir: Path, command: Command) -> None:
    before = sorted(path.name for path in (log_dir / "t-0").iterdir())
    *records, found = explained(command, "--records", str(log_dir))
    assert [(one["offset"], one["key"], one["fate"]) for one in records] == [
        (0, "a", "DROPPED_OLDER"),
        (1, "b", "DROPPED_OLDER"),
        (2, "a", "KEPT_LATEST"),
        (3, "b", "KEPT_TOMBSTONE"),
    ]
    assert found["dry_run"]["fates"] == {
        "KEPT_LATEST": 1,
        "KEPT_TOMBSTONE": 1,
        "DROPPED_OLDER": 2,
    }
    policy = ("--config", "cleanup.policy=compact")
    shown = command("explain-cleaner", "--dry-run", *policy, log_dir).out
    assert "100% of it are dirty" in shown
    assert "there is a later record of its key" in shown
    assert sorted(path.name for path in (log_dir / "t-0").iterdir()) == before
