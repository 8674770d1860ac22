"""Apache Kafka's cleaner and this one make the same files of the same log.

Each seed draws a history (tests/support/compaction_histories.py); CLEANING_SEEDS=0:500 tries more
seeds than the suite does. Each turn continues with the output of one of the two, so that each
cleaner also cleans what the other has cleaned.

Kafka's cleaner has surprises, and the comparison allows for them:

* It refuses a log for ever if its indexes are small and full: when segments are merged, one index
  entry more can be due than both had, and the cleaned index has no room for it. This cleaner leaves
  such an entry out.
* It refuses a log if the last batch of the round is of format 0 or 1 and no record of it remains,
  because those formats have no empty batch.
* It rewrites messages of formats 0 and 1 in format 2, even those it keeps whole, and so gives their
  tombstones a delete horizon.
* It leaves an aborted transaction in the index for one cleaning longer than its data. Once gone, it
  may come back when the index is rebuilt with an old producer snapshot.
* It does not know transactions that were aborted below the log start, so it keeps their data, which
  nobody can read. This cleaner removes it; such histories are not compared.
* DumpLogSegments calls the time index of a cleaned log wrong: an empty batch, which is kept for its
  producer, has a greatest timestamp but no record with it.
* If the offset map is full in the middle of a batch, the next round begins there.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from protocol.records.header import DELETE_HORIZON_BIT
from storage.cleaner.fates import RecordFate
from storage.reader import PartitionView
from tests.support.cleaning_duel import Duel, Outcome, copy
from tests.support.kafka_cleaner import KafkaCleaner

pytestmark = pytest.mark.conformance

FIRST, END = (int(part) for part in os.environ.get("CLEANING_SEEDS", "0:16").split(":"))
TIME_OF_NO_RECORD = "Found timestamp mismatch in :"
EACH = 16
REFUSALS = ("Attempt to append to a full", "Empty batches are only supported for magic v2")
SANE = ("passed sanity check.", "is empty.")
FAULTS = ("Mismatch", "mismatch", "Found ", "isvalid: false", "Exception", "not match")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCleaner]:
    with KafkaCleaner(tmp_path_factory.mktemp("oracle")) as oracle:
        yield oracle


@pytest.mark.parametrize(
    "seeds", [range(at, min(at + EACH, END)) for at in range(FIRST, END, EACH)]
)
def test_s_cmp_5_both_cleaners_leave_the_same(
    kafka: KafkaCleaner, tmp_path: Path, seeds: range
) -> None:
    met = Met()
    for seed in seeds:
        duel = Duel(seed, kafka, tmp_path / str(seed))
        for outcome in duel.turns():
            assert outcome.wrong == [], f"{outcome}\n{duel.history}"
            met.note(duel, outcome)
            if outcome.kafka is None:
                assert any(why in outcome.refused for why in REFUSALS), outcome
                assert_only_of_empty_batches(faults_found(kafka, duel.ours))
                continue
            check_with_kafkas_tool(duel)
            check_opened_by_kafka(duel, outcome)
        shutil.rmtree(duel.root)
    assert met.missing() == [] or len(seeds) < EACH


@dataclass
class Met:
    """The cases that the histories have led to: a test that never meets a case proves nothing."""

    fates: set[RecordFate] = field(default_factory=set)
    cases: set[str] = field(default_factory=set)

    def note(self, duel: Duel, outcome: Outcome) -> None:
        assert outcome.stats is not None
        counts = zip(RecordFate, outcome.stats.fates, strict=True)
        self.fates |= {fate for fate, count in counts if count}
        if outcome.stats.end_offset < outcome.first_uncleanable:
            self.cases.add("map full")
        for segment in PartitionView(duel.ours).segments()[:-1]:
            columns = segment.batch_columns()
            self.cases |= {"nothing left"} if not len(columns["size"]) else set()
            self.cases |= {"aborted"} if segment.aborted() else set()
            self.cases |= (
                {"horizon"} if (columns["attributes"] & DELETE_HORIZON_BIT).any() else set()
            )
            self.cases |= {"emptied"} if not columns["record_count"].all() else set()

    def missing(self) -> list[str]:
        """Return the cases that were not met, of those that every run of some size meets."""
        wanted = {"map full", "nothing left", "aborted", "horizon", "emptied"}
        fates = {*RecordFate} - {RecordFate.KEPT_CONTROL} - self.fates
        return sorted((wanted - self.cases) | {fate.name for fate in fates})


def check_with_kafkas_tool(duel: Duel) -> None:
    """DumpLogSegments finds no fault in our files that it does not find in Kafka's (S-FMT-1)."""
    faults = [faults_found(duel.kafka, directory) for directory in (duel.kafkas, duel.ours)]
    assert faults[1] == faults[0]
    assert_only_of_empty_batches(faults[0])


def assert_only_of_empty_batches(faults: list[str]) -> None:
    assert [line for line in faults if not line.startswith(TIME_OF_NO_RECORD)] == []


def faults_found(kafka: KafkaCleaner, directory: Path) -> list[str]:
    logs = sorted(directory.glob("*.log"))
    indexes = [path for path in sorted(directory.iterdir()) if path.suffix.endswith("index")]
    said = kafka.dump(logs, "--deep-iteration")
    said += kafka.dump(indexes, "--verify-index-only")
    bare = [path for path in indexes if path.suffix != ".txnindex"]
    sane = kafka.dump(bare, "--index-sanity-check")
    assert sum(line.endswith(SANE) for line in sane.splitlines()) == 2 * len(logs)
    # The tool keeps what it finds in hash tables.
    return sorted(
        line.replace(str(directory), "")
        for line in (said + sane).splitlines()
        if any(word in line for word in FAULTS)
    )


def check_opened_by_kafka(duel: Duel, outcome: Outcome) -> None:
    """Kafka opens our files with the same offsets, producers and sequences as its own."""
    opened = []
    for directory in (duel.kafkas, duel.ours):
        for clean_shutdown in (True, False):
            target = duel.root / "opened" / directory.name
            copy(directory, target)
            opened.append(
                duel.kafka.facts(
                    target,
                    duel.history.config,
                    now_ms=outcome.turn.now_ms,
                    clean_shutdown=clean_shutdown,
                )
            )
    theirs, their_recovered, ours, our_recovered = opened
    assert ours == theirs
    assert our_recovered == their_recovered
