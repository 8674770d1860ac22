"""The output of `pykafkalog fsck`: a table, sentences and advice for people, JSON for programs."""

import json
import sys
from collections import Counter
from typing import Any, Final

from config.terminal import console
from storage.check.findings import (
    LOSES_RECORDS,
    Finding,
    PartitionVerdict,
    Problem,
    Severity,
    Verdict,
)
from tools.console import say
from tools.tables import Coloured, count_of, number, print_table

MANY: Final = 40
"""If there are more partitions than this, the sound ones are only counted, not listed."""

_COLOURS: Final = {
    Verdict.SOUND: "green",
    Verdict.HEALS: "cyan",
    Verdict.LOSES_RECORDS: "red",
    Verdict.STAYS_DAMAGED: "red",
    Verdict.BLOCKED: "red",
}
_OF_VERDICTS: Final = {
    Verdict.HEALS: "heals: nothing is lost; a restart, or `fsck --repair`, puts it right.",
    Verdict.LOSES_RECORDS: "loses records: a restart cuts what cannot be read. "
    "`fsck --repair` does the same and keeps a copy of what it cuts.",
    Verdict.STAYS_DAMAGED: "stays damaged: after a clean stop a restart does not look there. "
    "`fsck --repair` rebuilds indexes; `fsck --from-start` shows what a recovery of the whole log "
    "would cut, and with --repair does it (with a copy).",
    Verdict.BLOCKED: "blocks the start: a broker does not open it, a repair leaves it alone.",
}
_OF_PROBLEMS: Final = {
    Problem.DUPLICATE: "in two log directories: keep the one with the larger end offset, move the "
    "other directory away.",
    Problem.UNREADABLE: "cannot be read: run fsck and the broker as the user who owns the files, "
    "or give it the rights (chown, chmod); an I/O error is the disk's.",
    Problem.META_CORRUPT: "meta.properties: write version=1, node.id, cluster.id and directory.id, "
    "the first three as in the other log directories; or move the file away: the next broker to "
    "start there makes the directory its own.",
    Problem.META_FOREIGN: "of another owner: take the directory out of log.dirs; a broker of its "
    "own can serve it (`pykafkalog adopt --help`).",
    Problem.NOT_A_LOG_DIR: "no log directory: name one of log.dirs, or a partition directory.",
    Problem.NOT_CLEAN: "no clean-shutdown marker: the broker was killed, or the power went. "
    "A start recovers each partition from its recovery point on; nothing has to be done.",
    Problem.STRAY: "stray: if nobody misses the topic, remove the directory.",
}


def print_json(findings: list[Finding], verdicts: list[PartitionVerdict]) -> None:
    """Print an object per finding of a log directory, then one per partition."""
    for finding in findings:
        print(json.dumps(_finding(finding)))
    for verdict in verdicts:
        print(
            json.dumps(
                {
                    "directory": verdict.directory,
                    "partition": str(verdict.topic_partition),
                    "verdict": verdict.verdict,
                    "sound": verdict.is_sound,
                    "log_start_offset": verdict.log_start_offset,
                    "log_end_offset": verdict.log_end_offset,
                    "batches": verdict.batches,
                    "bytes": verdict.bytes,
                    "bytes_lost": verdict.loses,
                    "findings": [_finding(finding) for finding in verdict.findings],
                    "actions": [str(action) for action in verdict.actions],
                }
            )
        )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "problem": finding.problem.name,
        "severity": str(finding.severity),
        "path": finding.path,
        "position": finding.position,
        "text": str(finding),
    }


def print_text(
    findings: list[Finding], verdicts: list[PartitionVerdict], *, in_use: bool, every: bool
) -> None:
    """Print the directories' findings, a table, details, the sum and what to do."""

    def line(colour: str, mark: str, text: object) -> None:
        console().print(f"[{colour}]{mark}[/]", end=" ")
        say(str(text))

    for finding in findings:
        line("yellow", finding.severity, finding)
    if in_use:
        say("A broker is running here: what its clean stop will settle is not counted.")
    listed = verdicts
    if len(verdicts) > MANY and not every and sys.stdout.isatty():
        listed = [v for v in verdicts if v.verdict is not Verdict.SOUND]
    if listed:
        _show_table(listed)
    for verdict in listed:
        for finding in verdict.findings:
            line("yellow", finding.severity, finding)
        for action in verdict.actions:
            line("red" if action.kind in LOSES_RECORDS else "cyan", "restart:", action)
    say(_sum(verdicts))
    advice = _advice(findings, verdicts)
    if advice:
        say("What it means and what to do:")
        for text in advice:
            say(f"  * {text}")


def _show_table(verdicts: list[PartitionVerdict]) -> None:
    rows = []
    for verdict in verdicts:
        word = verdict.verdict
        kinds = sorted({str(action.kind) for action in verdict.actions})
        known = word is not Verdict.BLOCKED or verdict.batches
        begin, end = verdict.log_start_offset, verdict.log_end_offset
        rows.append(
            (
                str(verdict.topic_partition),
                f"{number(begin)} to {number(end)}" if known else "unknown",
                verdict.batches,
                verdict.bytes,
                Coloured(word, _COLOURS[word]),
                "fail" if word is Verdict.BLOCKED else ", ".join(kinds) or "change nothing",
            )
        )
    print_table(("partition", "offsets", "batches", "bytes", "verdict", "a restart would"), rows)


def _sum(verdicts: list[PartitionVerdict]) -> str:
    if not verdicts:
        return "No partitions to check."
    counts = Counter(verdict.verdict for verdict in verdicts)
    parts = [f"{number(counts[word])} {word}" for word in Verdict if counts[word]]
    lost = sum(verdict.loses for verdict in verdicts)
    tail = f"; a restart would cut {number(lost)} bytes of records" if lost else ""
    return f"{count_of(len(verdicts), 'partition')}: {', '.join(parts)}{tail}."


def _advice(findings: list[Finding], verdicts: list[PartitionVerdict]) -> list[str]:
    words = {verdict.verdict for verdict in verdicts}
    problems = {finding.problem for finding in findings}
    problems |= {finding.problem for verdict in verdicts for finding in verdict.findings}
    told = [text for word, text in _OF_VERDICTS.items() if word in words]
    return told + [text for problem, text in _OF_PROBLEMS.items() if problem in problems]


def problems(findings: list[Finding]) -> list[Finding]:
    """Return the findings that are problems, not only notes."""
    return [finding for finding in findings if finding.severity is Severity.PROBLEM]
