"""The same directory cleaned by Apache Kafka and by this cleaner, and what differs then.

A duel is a history (`compaction_histories`), turn by turn: the log grows, is copied, both clean,
the results are compared, and one of them is what the next turn goes on with. So each cleans what
the other has cleaned.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from storage.cleaner.cleaning import clean, perform, request_for
from storage.cleaner.request import CleanerStats
from storage.log.log import Log
from tests.support.compaction_histories import CompactionHistory, HistoryWriter, Turn
from tests.support.kafka_cleaner import BYTES_PER_SLOT, Answer, KafkaCleaner, KafkaRefused
from tests.support.log_differences import differences

NAME = "compacted-0"


@dataclass(kw_only=True)
class Outcome:
    """One turn's cleaning by both."""

    seed: int
    turn: Turn
    first_dirty: int
    first_uncleanable: int
    kafka: Answer | None
    """None: it refused."""
    stats: CleanerStats | None = None
    """Ours."""
    refused: str = ""
    """Why Kafka did not clean it."""
    bytes_before: int = 0
    bytes_after: int = 0
    wrong: list[str] = field(default_factory=list)
    """Sentences on what differs."""

    def __str__(self) -> str:
        return (
            f"seed {self.seed} turn {self.turn.number}: [{self.first_dirty}, "
            f"{self.first_uncleanable}) {self.bytes_before} -> {self.bytes_after} bytes "
            f"{self.refused} {self.wrong}"
        )


class Duel:
    """One history; its directories lie in `root`, and those of the last turn stay there."""

    def __init__(self, seed: int, kafka: KafkaCleaner, root: Path) -> None:
        self.history = CompactionHistory(seed)
        self.kafka = kafka
        self.root = root
        self.before = root / "before" / NAME
        self.kafkas = root / "kafka" / NAME
        self.ours = root / "ours" / NAME

    def turns(self) -> Iterator[Outcome]:
        """Ends early when Kafka refuses, or when something differs."""
        writer = HistoryWriter(self.history)
        self.before.mkdir(parents=True)
        checkpoint: int | None = None
        for turn in self.history.turns():
            writer.extend(self.before, turn)
            plan = self.kafka.plan(
                self.before,
                self.history.config,
                now_ms=turn.now_ms,
                checkpoint=None if turn.begin_anew else checkpoint,
            )
            if plan["firstDirty"] >= plan["firstUncleanable"]:
                continue
            outcome = self._clean(turn, plan)
            yield outcome
            if outcome.kafka is None or outcome.wrong:
                return
            checkpoint = outcome.kafka["endOffset"]
            copy(self.kafkas if turn.next_from_kafka else self.ours, self.before)

    def _clean(self, turn: Turn, plan: Answer) -> Outcome:
        outcome = Outcome(
            seed=self.history.seed,
            turn=turn,
            first_dirty=plan["firstDirty"],
            first_uncleanable=plan["firstUncleanable"],
            kafka=None,
            bytes_before=_size(self.before),
        )
        copy(self.before, self.kafkas)
        copy(self.before, self.ours)
        try:
            outcome.kafka = self.kafka.clean(
                self.kafkas,
                self.history.config,
                now_ms=turn.now_ms,
                first_dirty=outcome.first_dirty,
                first_uncleanable=outcome.first_uncleanable,
                map_bytes=turn.map_slots * BYTES_PER_SLOT,
                io_buffer=turn.io_buffer_bytes,
            )
        except KafkaRefused as error:
            outcome.refused = str(error)
            return outcome
        outcome.bytes_after = _size(self.kafkas)
        outcome.wrong += self.clean_ours(outcome)
        outcome.wrong += differences(self.kafkas, self.ours)
        return outcome

    def clean_ours(self, outcome: Outcome) -> list[str]:
        """Clean with ours as `outcome` says; what its numbers say otherwise than Kafka's."""
        turn = outcome.turn
        log = self.history.load(self.ours, turn.now_ms)
        request = request_for(
            log,
            outcome.first_dirty,
            outcome.first_uncleanable,
            now_ms=turn.now_ms,
            map_bytes=turn.map_slots * BYTES_PER_SLOT,
            io_buffer_bytes=turn.io_buffer_bytes,
        )
        stats = perform(clean(log, request))
        log._check()
        log.flush()
        log.close()
        _remove_deleted(log)
        assert outcome.kafka is not None
        outcome.stats = stats
        return _different_numbers(outcome.kafka, stats)


def _different_numbers(kafka: Answer, stats: CleanerStats) -> list[str]:
    numbers = {
        "endOffset": stats.end_offset,
        "bytesRead": stats.bytes_read,
        "messagesWritten": stats.messages_written,
        "invalidMessagesRead": stats.invalid_messages_read,
    }
    return [
        f"{name}: {kafka[name]} (Kafka) {number} (ours)"
        for name, number in numbers.items()
        if number != kafka[name]
    ]


def _remove_deleted(log: Log) -> None:
    for pending in log.take_pending_deletions():
        Path(pending.path).unlink()


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def copy(source: Path, target: Path) -> None:
    """With the times of the files, in the place of what is there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
