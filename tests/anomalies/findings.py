"""The findings of a checker: the anomalies by name, each with its evidence, and the report."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

SHOWN_PER_ANOMALY: Final = 5
SHOWN_LINES: Final = 6


class Anomaly(Enum):
    """Each has a name and a meaning. A read_committed reader of Kafka may meet none of them."""

    ABORTED_READ = (
        "G1a aborted read",
        "a value of a transaction that is known to be aborted was read",
    )
    UNCOMMITTED_READ = "uncommitted read", "a value was read before its commit was asked for"
    INTERMEDIATE_READ = "G1b intermediate read", "a reader saw a part of what a transaction wrote"
    LOST_WRITE = "lost write", "a committed value is missing below what was read"
    TORN_TRANSACTION = "torn transaction", "of one transaction some values are there, others not"
    PHANTOM = "phantom", "a value was read that nobody had sent to that partition"
    DUPLICATE = "duplicate", "one value lies at more than one offset"
    INCONSISTENT_OFFSET = "inconsistent offset", "two values at one offset"
    NONMONOTONIC_POLL = "non-monotonic poll", "a reader went back between two polls"
    INTERNAL_NONMONOTONIC_POLL = "internal non-monotonic poll", "one poll's offsets do not rise"
    SKIPPED_POLL = "skipped poll", "a reader passed over a committed value between two polls"
    INTERNAL_SKIPPED_POLL = "internal skipped poll", "one poll passed over a committed value"
    NONMONOTONIC_SEND = (
        "non-monotonic send",
        "a producer's later transaction lies before its earlier",
    )
    INTERNAL_NONMONOTONIC_SEND = (
        "internal non-monotonic send",
        "within a transaction a later send lies before an earlier one",
    )
    WRITE_CYCLE = "G0 write cycle", "writes are ordered against transactions that had ended before"
    INFORMATION_CYCLE = "G1c circular information flow", "committed transactions read each other"
    DUPLICATE_EFFECT = (
        "duplicate effect",
        "two committed transactions of a group consumed one input",
    )
    LOST_EFFECT = "lost effect", "a group passed over a committed input"
    HANGING_TRANSACTION = "hanging transaction", "the last stable offset does not reach the log end"

    def __init__(self, label: str, meaning: str) -> None:
        self.label = label
        self.meaning = meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly and what shows it."""

    anomaly: Anomaly
    what: str
    """One sentence."""
    evidence: tuple[str, ...] = ()
    """A line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of one history."""

    findings: tuple[Finding, ...]
    counts: dict[str, int] = field(default_factory=dict)
    """Sizes of the history: transactions by outcome, values, polls, clients."""
    notes: tuple[str, ...] = ()
    """Lines that are worth knowing and name no anomaly."""

    @property
    def is_clean(self) -> bool:
        """Whether there is no anomaly."""
        return not self.findings

    @property
    def kinds(self) -> Counter[Anomaly]:
        """The number of findings of each anomaly."""
        return Counter(finding.anomaly for finding in self.findings)

    def text(self, shown: int = SHOWN_PER_ANOMALY) -> str:
        """Return sizes, then each anomaly with the evidence of its first findings, for a person."""
        lines = ["  ".join(f"{name}: {count}" for name, count in self.counts.items())]
        lines += [f"note: {note}" for note in self.notes]
        if self.is_clean:
            return "\n".join([*lines, "no anomalies"])
        for anomaly, count in self.kinds.most_common():
            lines += ["", f"{anomaly.label.upper()} × {count}: {anomaly.meaning}"]
            some = [finding for finding in self.findings if finding.anomaly is anomaly][:shown]
            for finding in some:
                lines.append(f"  * {finding.what}")
                lines += [f"      {line}" for line in finding.evidence[:SHOWN_LINES]]
            if count > len(some):
                lines.append(f"  … and {count - len(some)} more")
        return "\n".join(lines)


def merged(parts: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    """Return all findings in one row."""
    return tuple(finding for part in parts for finding in part)
