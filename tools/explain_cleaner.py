"""`pykafkalog explain-cleaner`: what the cleaner would clean of compacted topics, when, and why.

The command reads the files and changes nothing; a broker may be running on them.
"""

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from config.terminal import console
from storage.cleaner import planner
from storage.cleaner.errors import SegmentOverflow, UncleanableLog
from storage.cleaner.fates import RecordFate
from storage.cleaner.planner import Due, DueReason, NotDue, Reason
from storage.cleaner.request import CleanerStats
from storage.explain.cleaning import CleaningVerdict, explain_cleaning
from storage.explain.opened import OpenedLog
from storage.reader import PartitionView
from tools.console import say
from tools.log_targets import Targets, add_target_arguments, allocated, describe
from tools.magnitudes import duration, moment, size_of
from tools.progress import progress_bar
from tools.tables import Coloured, number, print_table
from tools.usage import command_parser

if TYPE_CHECKING:
    from storage.explain.dry_run import JudgedRecord

EXAMPLES = """\
  pykafkalog explain-cleaner orders              of a broker on this machine
  pykafkalog explain-cleaner /tmp/kafka-logs     every partition there
  pykafkalog explain-cleaner orders --config min.cleanable.dirty.ratio=0.1
                                                 what would happen if?
  pykafkalog explain-cleaner --dry-run /tmp/kafka-logs/orders-0
                                                 what would go, by which rule
  pykafkalog explain-cleaner --records orders    the fate of each record
  pykafkalog explain-cleaner --json DIR          one JSON object a partition

A log is cleaned up to its active segment, or to the first open transaction, or
to the first record younger than min.compaction.lag.ms; when more than
min.cleanable.dirty.ratio of that was written since the last cleaning, or when
it is older than max.compaction.lag.ms. The dirtiest goes first. What only the
broker knows is in its metrics: that a partition is being cleaned, or was given
up (uncleanable-partitions-count).

exit code: 0 done; 1 a log could not be read, standard error says why; 2 wrong
arguments"""

CONFIGS = (
    "cleanup.policy",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
    "segment.bytes",
    "segment.ms",
)
RULES: Final = {
    RecordFate.KEPT_LATEST: "the last value of its key",
    RecordFate.KEPT_ABOVE_MAP: "behind what the map of keys knows",
    RecordFate.KEPT_TOMBSTONE: "a tombstone younger than delete.retention.ms",
    RecordFate.KEPT_MARKER: "the end of a transaction that has records here, or of late",
    RecordFate.KEPT_CONTROL: "a control record",
    RecordFate.DROPPED_OLDER: "there is a later record of its key",
    RecordFate.DROPPED_TOMBSTONE: "a tombstone older than delete.retention.ms",
    RecordFate.DROPPED_NO_KEY: "it has no key",
    RecordFate.DROPPED_ABORTED: "its transaction was aborted",
    RecordFate.DROPPED_MARKER: "the end of a transaction that has no records left",
}
_BAR: Final = 48
"""The width of the bars, in characters."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    text = "Tell what of compacted topics would be cleaned, when, and why not yet."
    parser = command_parser(commands, "explain-cleaner", text=text, examples=EXAMPLES)
    add_target_arguments(parser)
    parser.add_argument(
        "--all", action="store_true", help="partitions without cleanup.policy=compact, too"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="read what would be cleaned, tell how many records stay and go, by which rule",
    )
    parser.add_argument(
        "--records", action="store_true", help="as --dry-run, and a line for each record"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Explain every target. Raises CommandError."""
    targets = Targets(args)
    now = targets.clock.wall_ms()
    enabled = targets.broker.log_cleaner_enable
    left_out = 0
    if not args.json:
        for note in targets.notes:
            say(note)
    for view, opened in targets.opened():
        config = opened.log.config
        named = len(targets.found) == 1
        if not (config.compact or args.all or named):
            left_out += 1
            continue
        with targets.reading(view):
            found = explain_cleaning(opened, now, cleaner_enabled=enabled)
        told = _as_json(view, found)
        if not args.json:
            _show(view, opened, found, now)
        if args.dry_run or args.records:
            with targets.reading(view):
                told["dry_run"] = _dry_run(args, targets, view, opened, found, now)
        if args.json:
            print(json.dumps(told))
    if left_out and not args.json:
        say()
        say(f"{number(left_out)} partitions are not compacted (--all shows them).")


def _dry_run(
    args: argparse.Namespace,
    targets: Targets,
    view: PartitionView,
    opened: OpenedLog,
    found: CleaningVerdict,
    now: int,
) -> dict[str, Any] | None:
    """Rehearse a cleaning and show it; return the result for JSON, None if nothing is dirty."""
    extent = found.verdict.extent
    if extent is None or not extent.cleanable_bytes:
        if not args.json:
            say("  Nothing would be cleaned.")
        return None
    from storage.explain.dry_run import JudgedRecord, dry_run

    def tell(record: JudgedRecord) -> None:
        if args.json:
            print(json.dumps({"partition": str(view.topic_partition)} | _record_as_json(record)))
        else:
            print(_line(record))

    broker = targets.broker
    share = broker.log_cleaner_dedupe_buffer_size // max(broker.log_cleaner_threads, 1)
    total = extent.total_bytes + extent.cleanable_bytes
    try:
        with progress_bar(str(view.topic_partition), total, bytes_=True) as advance:
            stats = dry_run(
                opened,
                extent,
                now_ms=now,
                map_bytes=min(share, 2**31 - 1),
                load_factor=broker.log_cleaner_io_buffer_load_factor,
                tell=tell if args.records else None,
                advance=advance,
            )
    except (UncleanableLog, SegmentOverflow) as error:
        if not args.json:
            say(f"  It cannot be cleaned: {error}")
        return {"uncleanable": str(error)}
    fates = {RecordFate(code): count for code, count in enumerate(stats.fates) if count}
    if not args.json:
        _show_dry_run(stats, fates)
    return {
        "end_offset": stats.end_offset,
        "bytes_before": stats.bytes_read,
        "bytes_after": stats.bytes_written,
        "records_before": sum(fates.values()),
        "map_utilization": stats.map_utilization,
        "fates": {fate.name: count for fate, count in fates.items()},
    }


def _show_dry_run(stats: CleanerStats, fates: dict[RecordFate, int]) -> None:
    saved = 1 - stats.bytes_written / stats.bytes_read if stats.bytes_read else 0.0
    say(
        f"  Cleaned up to {number(stats.end_offset)}, it would have {size_of(stats.bytes_written)} "
        f"of {size_of(stats.bytes_read)}: {saved:.0%} less. The map of keys would be "
        f"{stats.map_utilization:.1%} full."
    )
    rows = []
    for fate, count in fates.items():
        stays = fate < RecordFate.DROPPED_OLDER
        rows.append(
            (count, Coloured("stay", "") if stays else Coloured("go", "yellow"), RULES[fate])
        )
    print_table(("records", "they", "rule"), rows)


def _record_as_json(record: "JudgedRecord") -> dict[str, Any]:
    return {
        "offset": record.offset,
        "last_offset": record.last_offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.decode(errors="backslashreplace"),
        "value_bytes": record.value_size,
        "kept": record.fate < RecordFate.DROPPED_OLDER,
        "fate": record.fate.name,
    }


def _line(record: "JudgedRecord") -> str:
    word = "stays" if record.fate < RecordFate.DROPPED_OLDER else "goes "
    offsets = f"{record.offset}"
    if record.last_offset > record.offset:
        offsets += f"-{record.last_offset}"
    parts = [f"{offsets:>12}  {word}"]
    if record.is_opened:
        key = "null" if record.key is None else repr(record.key)[1:]
        value = "null" if record.value_size is None else f"{record.value_size} B"
        parts.append(f"key {key}, value {value}")
    return f"{parts[0]}  {', '.join([*parts[1:], RULES[record.fate]])}"


def _as_json(view: PartitionView, found: CleaningVerdict) -> dict[str, Any]:
    verdict = found.verdict
    extent = verdict.extent
    told: dict[str, Any] = {
        "partition": str(view.topic_partition),
        "directory": view.directory,
        "log_start_offset": found.log_start_offset,
        "log_end_offset": found.log_end_offset,
        "bytes": found.size,
        "cleaner_checkpoint": found.checkpointed,
        "is_due": isinstance(verdict, Due),
        "due_by": verdict.reason.value if isinstance(verdict, Due) else None,
        "delay_ms": verdict.delay_ms,
    }
    if extent is not None:
        told |= {
            "first_dirty_offset": extent.first_dirty_offset,
            "first_uncleanable_offset": extent.first_uncleanable_offset,
            "clean_bytes": extent.clean_bytes,
            "cleanable_bytes": extent.cleanable_bytes,
            "ratio": extent.ratio,
            "checkpoint_reset": None if extent.reset is None else extent.reset.value,
        }
    reasons = verdict.reasons if isinstance(verdict, NotDue) else ()
    told["reasons"] = [_reason_as_json(reason) for reason in reasons]
    return told


def _reason_as_json(reason: Reason) -> dict[str, Any]:
    fields = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(reason).items()
    }
    return {"kind": type(reason).__name__, **fields}


def _show(view: PartitionView, opened: OpenedLog, found: CleaningVerdict, now: int) -> None:
    configs = describe(opened.log.config, CONFIGS)
    say()
    say(
        f"{view.topic_partition}: offsets {number(found.log_start_offset)} to "
        f"{number(found.log_end_offset)}, {size_of(found.size)}{allocated(opened)}"
    )
    say("  " + ", ".join(f"{name}={value}" for name, value in configs.items()))
    verdict = found.verdict
    extent = verdict.extent
    if extent is not None and found.size:
        rest = found.size - extent.total_bytes
        dirty, end = extent.first_dirty_offset, extent.first_uncleanable_offset
        for name, colour, size, first, last in (
            ("clean", "green", extent.clean_bytes, found.log_start_offset, dirty),
            ("dirty", "yellow", extent.cleanable_bytes, dirty, end),
            ("not yet", "blue", rest, max(end, dirty), found.log_end_offset),
        ):
            _bar(
                name, colour, size, found.size, f"{number(first)} to {number(last)}" if size else ""
            )
        if extent.reset is not None:
            say(
                f"  The cleaner's checkpoint, {number(found.checkpointed or 0)}, is not believed: "
                f"{extent.reset.value}."
            )
    if isinstance(verdict, Due):
        say(f"  It is cleaned next: {_due(verdict)}.")
        return
    say("  It is not cleaned now:")
    for reason in verdict.reasons:
        say(f"  * {sentence(reason, now)}")


def _bar(name: str, colour: str, size: int, total: int, offsets: str) -> None:
    bar = ""
    if sys.stdout.isatty():
        width = max(round(_BAR * size / total), 1 if size else 0)
        bar = f"[{colour}]{'█' * width}[/] "
    console().print(f"  {name:8}{bar}{size_of(size)}  {offsets}", soft_wrap=True)


def _due(verdict: Due) -> str:
    if verdict.reason is DueReason.MAX_LAG:
        return f"what is dirty has outlived max.compaction.lag.ms by {duration(verdict.delay_ms)}"
    return f"{verdict.ratio:.0%} of it are dirty (min.cleanable.dirty.ratio)"


def sentence(reason: Reason, now: int) -> str:  # noqa: PLR0911 - one for each kind
    """Say in words why a log is not cleaned."""
    match reason:
        case planner.CleanerDisabled():
            return "the cleaner is switched off (log.cleaner.enable, log.cleaner.threads)"
        case planner.NotCompacted(policy=policy):
            return f"cleanup.policy={','.join(sorted(policy))} has no compact"
        case planner.Uncleanable(why=why):
            return f"the cleaner has given it up: {why}"
        case planner.InProgress():
            return "a cleaner is at it"
        case planner.Paused():
            return "it is held back while it is moved or cut"
        case planner.NothingDirty():
            return "nothing was written since the last cleaning"
        case planner.RatioBelow(ratio=ratio, wanted=wanted, due_at_ms=due):
            text = f"{ratio:.0%} of it are dirty; more than {wanted:.0%} is wanted"
            return text if due is None else f"{text}, or {_when(due, now)}: max.compaction.lag.ms"
        case planner.ActiveSegmentOnly(base_offset=base, size=size, segment_bytes=most):
            return (
                f"from {number(base)} on it is the active segment ({size_of(size)} of "
                f"{size_of(most)}), which is cleaned once a further one was begun: by size, or "
                f"{duration(reason.segment_ms)} after its first record (segment.bytes, segment.ms)"
            )
        case planner.LagNotOver(base_offset=base, until_ms=until):
            return f"the segment at {number(base)} has records too young {_when(until, now)}: " + (
                "min.compaction.lag.ms"
            )
        case planner.NotReplicated(first_offset=first):
            return f"from {number(first)} on it is not replicated: above the high watermark"
        case planner.OpenTransaction(producer_id=producer, first_offset=first, since_ms=since):
            age = "" if since is None else f" for {duration(now - since)}, since {moment(since)}"
            begin = f"from {number(first)} on it waits for the open transaction of producer "
            return f"{begin}{producer}{age}"


def _when(due_ms: int, now: int) -> str:
    return f"in {duration(due_ms - now)}" if due_ms > now else "now"
