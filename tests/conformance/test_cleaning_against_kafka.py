"""The same log cleaned by Apache Kafka's cleaner and by this one: the same records, batches, files.

The histories are drawn (tests/support/compaction_histories.py), a seed each; CLEANING_SEEDS=0:500
tries more of them than the suite does. Each turn goes on with what one of the two has left, so
either cleans what the other has cleaned.

What Kafka's cleaner does that one would not expect, and what is made of it here:

* It refuses a log, for good, whose indexes are small and full: an index entry more can be due where
  segments meet than both had before, and the cleaned index has no room for it. This cleaner leaves
  such an entry out.
* It refuses a log when the last batch of the round is of format 0 or 1 and nothing of it remains:
  there is no empty batch in those formats.
* It writes whatever stays of formats 0 and 1 in format 2, wholly kept messages too, and gives their
  tombstones a delete horizon by that.
* It leaves an aborted transaction in the index for one cleaning longer than its data. Once gone, it
  may come back when the index is rebuilt with a producer snapshot of the time.
* Of transactions that were aborted below the log start it knows nothing: their data, which nobody
  can read, stays like any other. Here it goes; such histories are not compared.
* DumpLogSegments takes the time index of a cleaned log for wrong: an empty batch, which is kept for
  its producer, has a greatest timestamp, and no record that bears it.
* A full map ends in the middle of a batch, so the next round may begin in the middle of one.
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
    """What the histories have led to: a test that never meets a case says nothing of it."""

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
        """Cases that every run of some size meets."""
        wanted = {"map full", "nothing left", "aborted", "horizon", "emptied"}
        fates = {*RecordFate} - {RecordFate.KEPT_CONTROL} - self.fates
        return sorted((wanted - self.cases) | {fate.name for fate in fates})


def check_with_kafkas_tool(duel: Duel) -> None:
    """DumpLogSegments finds no fault with ours that it does not find with Kafka's (S-FMT-1)."""
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
    """Kafka opens ours as its own: the same offsets, producers and sequences, also by recovery."""
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
