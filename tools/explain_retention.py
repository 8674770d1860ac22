"""`pykafkalog explain-retention`: which segments go, when, by which rule, and why the others stay.

The command reads the files and changes nothing; a broker may be running on them.
"""

import argparse
import json
import sys
from typing import Any

from storage.explain.opened import OpenedLog
from storage.explain.retention import RetentionVerdict, explain_retention
from storage.reader import PartitionView
from tools.console import say
from tools.log_targets import Targets, add_target_arguments, allocated, describe
from tools.magnitudes import duration, moment, size_of
from tools.tables import Cell, Coloured, count_of, number, print_table, size
from tools.usage import command_parser

EXAMPLES = """\
  pykafkalog explain-retention /tmp/kafka-logs    every partition there
  pykafkalog explain-retention orders             of a broker on this machine
  pykafkalog explain-retention orders --config retention.ms=3600000
                                                  what would happen if?
  pykafkalog explain-retention --json DIR         one JSON object a segment

A segment goes when its newest record is older than retention.ms, when
retention.bytes are left without it, or when it lies below the log start offset;
always with all before it, never with records at or above the high watermark.
The broker looks every log.retention.check.interval.ms (5 minutes).

exit code: 0 done; 1 a log could not be read, standard error says why; 2 wrong
arguments"""

CONFIGS = ("cleanup.policy", "retention.ms", "retention.bytes", "segment.ms", "segment.bytes")
FEW = 12
"""The most segments that are listed; of more, half of this number at either end."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    text = "Tell which segments retention takes and when, and why the others stay."
    parser = command_parser(commands, "explain-retention", text=text, examples=EXAMPLES)
    add_target_arguments(parser)
    parser.add_argument("--all", action="store_true", help="list every segment of long logs")
    parser.add_argument("--json", action="store_true", help="one JSON object a segment")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Explain every target. Raises CommandError."""
    targets = Targets(args)
    now = targets.clock.wall_ms()
    if not args.json:
        for note in targets.notes:
            say(note)
    for view, opened in targets.opened():
        with targets.reading(view):
            verdicts = explain_retention(opened.log, now)
        if args.json:
            for verdict in verdicts:
                print(json.dumps(_as_json(view, verdict)))
        else:
            _show(view, opened, verdicts, now, every=args.all)


def _as_json(view: PartitionView, verdict: RetentionVerdict) -> dict[str, Any]:
    return {
        "partition": str(view.topic_partition),
        "directory": view.directory,
        "base_offset": verdict.base_offset,
        "end_offset": verdict.end_offset,
        "bytes": verdict.size,
        "largest_timestamp": verdict.largest_timestamp,
        "is_active": verdict.is_active,
        "taken_by": None if verdict.taken_by is None else verdict.taken_by.value,
        "kept": None if verdict.kept is None else verdict.kept.value,
        "held_back_by": verdict.held_back_by,
        "due_ms": verdict.due_ms,
        "bytes_to_come": verdict.bytes_to_come,
    }


def _show(
    view: PartitionView,
    opened: OpenedLog,
    verdicts: list[RetentionVerdict],
    now: int,
    *,
    every: bool,
) -> None:
    log = opened.log
    if not log.size:
        say()
        say(f"{view.topic_partition}: empty, at offset {number(log.log_end_offset)}")
        return
    going = [one for one in verdicts if one.taken_by is not None]
    configs = describe(log.config, CONFIGS)
    say()
    say(
        f"{view.topic_partition}: offsets {number(log.log_start_offset)} to "
        f"{number(log.log_end_offset)}, {_segments(len(verdicts))}, {size_of(log.size)}"
        + allocated(opened)
    )
    say("  " + ", ".join(f"{name}={value}" for name, value in configs.items()))
    whole = every or len(verdicts) <= FEW or not sys.stdout.isatty()
    listed = verdicts if whole else _few(verdicts)
    rows: list[tuple[Cell, ...]] = []
    for verdict in listed:
        if verdict is None:
            rows.append(("…", "", "", "", f"{number(len(verdicts) - FEW)} more (--all)"))
            continue
        rows.append(
            (
                verdict.base_offset,
                verdict.end_offset,
                size(verdict.size),
                moment(verdict.largest_timestamp),
                Coloured(sentence(verdict, now), "yellow" if verdict.taken_by is not None else ""),
            )
        )
    print_table(("from", "to", "bytes", "newest record", "what becomes of it"), rows)
    if going:
        freed = sum(one.size for one in going)
        say(f"  The next run takes {_segments(len(going))}, {size_of(freed)}.")
    else:
        say("  The next run takes nothing.")


def _segments(count: int) -> str:
    return count_of(count, "segment")


def _few(verdicts: list[RetentionVerdict]) -> list[RetentionVerdict | None]:
    half = FEW // 2
    return [*verdicts[:half], None, *verdicts[-half:]]


def sentence(verdict: RetentionVerdict, now: int) -> str:
    """Say in words whether and when a segment goes."""
    if verdict.taken_by is not None:
        return f"goes: {verdict.taken_by.value}"
    parts = []
    if verdict.due_ms is not None:
        wait = verdict.due_ms - now
        when = f"in {duration(wait)}" if wait > 0 else "with that one"
        held = verdict.held_back_by
        why = (
            f"segment {number(held)} before it stays so long"
            if held is not None
            else "retention.ms"
        )
        parts.append(f"goes {when} ({why})")
    elif verdict.held_back_by is not None:
        parts.append(f"stays as long as segment {number(verdict.held_back_by)} before it")
    if verdict.bytes_to_come is not None:
        parts.append(f"goes after {size_of(verdict.bytes_to_come)} more (retention.bytes)")
    if not parts and verdict.kept is not None:
        parts.append(f"stays: {verdict.kept.value}")
    return "; or ".join(parts)
