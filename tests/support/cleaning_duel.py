"""Cleans the same directory with Apache Kafka's cleaner and with ours, and compares the results.

A duel is a history (`compaction_histories`), turn by turn: the log grows and is copied, both clean,
the results are compared, and the next turn begins with one of them. So each cleaner also cleans
logs that the other has cleaned.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.topic_config import TopicConfig
from storage.cleaner.cleaning import clean_here, request_for
from storage.cleaner.request import CleanerStats
from storage.log.log import Log
from storage.waits import at_once
from tests.support.compaction_histories import CompactionHistory, HistoryWriter, Turn
from tests.support.kafka_cleaner import BYTES_PER_SLOT, Answer, KafkaCleaner, KafkaRefused
from tests.support.log_differences import differences

NAME = "compacted-0"


@dataclass(kw_only=True)
class Outcome:
    """The results of one turn."""

    seed: int
    turn: Turn
    log_start: int
    first_dirty: int
    first_uncleanable: int
    kafka: Answer | None
    """None if Kafka refused to clean."""
    stats: CleanerStats | None = None
    """Statistics of our cleaner."""
    refused: str = ""
    """Why Kafka did not clean it."""
    bytes_before: int = 0
    bytes_after: int = 0
    wrong: list[str] = field(default_factory=list)
    """Sentences about the differences."""

    def __str__(self) -> str:
        return (
            f"seed {self.seed} turn {self.turn.number}, log start {self.log_start}: "
            f"[{self.first_dirty}, {self.first_uncleanable}) "
            f"{self.bytes_before} -> {self.bytes_after} bytes {self.refused} {self.wrong}"
        )


class Duel:
    """One history; its directories are in `root`, where those of the last turn stay."""

    def __init__(self, seed: int, kafka: KafkaCleaner, root: Path) -> None:
        self.history = CompactionHistory(seed)
        self.kafka = kafka
        self.root = root
        self.before = root / "before" / NAME
        self.kafkas = root / "kafka" / NAME
        self.ours = root / "ours" / NAME

    def turns(self) -> Iterator[Outcome]:
        """Yield outcomes until the first difference; take our result if Kafka refused."""
        writer = HistoryWriter(self.history)
        self.before.mkdir(parents=True)
        checkpoint: int | None = None
        start = 0
        for turn in self.history.turns():
            writer.extend(self.before, turn)
            start = max(start, self._log_start(turn))
            plan = self.kafka.plan(
                self.before,
                self.history.config,
                now_ms=turn.now_ms,
                checkpoint=None if turn.begin_anew else checkpoint,
                log_start=start,
            )
            if plan["firstDirty"] >= plan["firstUncleanable"]:
                continue
            config = self.history.config
            self.history.config = self._grouping(config, turn)
            outcome = self._clean(turn, plan, start)
            self.history.config = config
            yield outcome
            if outcome.wrong:
                return
            assert outcome.stats is not None
            checkpoint = outcome.stats.end_offset
            next_from_kafka = turn.next_from_kafka and outcome.kafka is not None
            copy(self.kafkas if next_from_kafka else self.ours, self.before)

    def _grouping(self, config: TopicConfig, turn: Turn) -> TopicConfig:
        """Return the config with a `segment.bytes` that a group of segments has exactly."""
        sizes = [path.stat().st_size for path in sorted(self.before.glob("*.log"))]
        size = sum(sizes[: turn.exact_group])
        return replace(config, segment_bytes=size) if size > config.segment_bytes else config

    def _log_start(self, turn: Turn) -> int:
        log = self.history.load(self.before, turn.now_ms)
        first, end = log.segments.first.base_offset, log.log_end_offset
        at_once(log.close())
        return first + int(turn.deleted * (end - first)) if turn.deleted else 0

    def _clean(self, turn: Turn, plan: Answer, log_start: int) -> Outcome:
        outcome = Outcome(
            seed=self.history.seed,
            turn=turn,
            log_start=log_start,
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
                log_start=log_start,
            )
        except KafkaRefused as error:
            outcome.refused = str(error)
        outcome.stats = self._clean_ours(outcome)
        outcome.bytes_after = _size(self.ours)
        if outcome.kafka is not None:
            outcome.wrong += _different_numbers(outcome.kafka, outcome.stats)
            outcome.wrong += differences(self.kafkas, self.ours)
        return outcome

    def _clean_ours(self, outcome: Outcome) -> CleanerStats:
        """Clean with our cleaner, for the turn of `outcome`."""
        turn = outcome.turn
        log = self.history.load(self.ours, turn.now_ms, log_start_offset=outcome.log_start)
        log.update_high_watermark(log.log_end_offset)
        request = request_for(
            log,
            outcome.first_dirty,
            outcome.first_uncleanable,
            now_ms=turn.now_ms,
            map_bytes=turn.map_slots * BYTES_PER_SLOT,
            io_buffer_bytes=turn.io_buffer_bytes,
        )
        stats = clean_here(log, request)
        log._check()
        at_once(log.flush())
        at_once(log.close())
        _remove_deleted(log)
        return stats


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
    for pending in log.store.take_pending():
        Path(pending.path).unlink()


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def copy(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source`, with the files' times."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
