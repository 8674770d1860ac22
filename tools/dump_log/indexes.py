"""Prints the indexes of a segment, and compares them with the record file beside them."""

from pathlib import Path

from storage.reader import CorruptIndex, IndexFlaw, IndexProblem, SegmentView
from tools.dump_log.options import Options
from tools.dump_log.output import Output
from tools.dump_log.problems import Heading
from tools.dump_log.record_file import is_being_written, segment_of

_HEADINGS = {
    IndexFlaw.OFFSET_MISMATCH: Heading.INDEX_MISMATCH,
    IndexFlaw.TIMESTAMP_MISMATCH: Heading.TIME_MISMATCH,
    IndexFlaw.OUT_OF_ORDER: Heading.TIME_ORDER,
    IndexFlaw.OFFSET_NOT_FOUND: Heading.TIME_NOT_FOUND,
}


def print_offset_index(file: Path, options: Options, output: Output) -> None:
    """Print `.index`: positions of offsets."""
    segment = segment_of(file)
    entries = segment.offset_index()
    if not entries and not (options.sanity_only and file.stat().st_size):
        output.say(f"{file} is empty.")
        return
    if not entries or options.sanity_only:
        _print_sanity(file, segment, output)
        return
    # Kafka's tool prints the last one first.
    for problem in reversed(_mismatches(file, segment, options, output)):
        _add(file, problem, output)
    if not options.verify_only:
        output.rows(("offset", "position"), entries)


def print_time_index(file: Path, options: Options, output: Output) -> None:
    """Print `.timeindex`: offsets of the largest timestamps so far."""
    segment = segment_of(file)
    if options.sanity_only:
        _print_sanity(file, segment, output)
        return
    for problem in _mismatches(file, segment, options, output):
        _add(file, problem, output)
    if not options.verify_only:
        output.rows(("timestamp", "offset"), segment.time_index())


def print_txn_index(file: Path, _options: Options, output: Output) -> None:
    """Print `.txnindex`: aborted transactions whose markers are in the segment."""
    segment = segment_of(file)
    try:
        aborted = segment.aborted()
        problems = [p for p in segment.sanity_check() if p.path == segment.txn_index_path]
    except CorruptIndex as error:
        output.problems.add(Heading.INDEX, file, str(error).removeprefix(f"{file.absolute()}: "))
        return
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    rows = [
        (0, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
        for txn in aborted
    ]
    output.rows(names, rows)
    for problem in problems:
        _add(file, problem, output)


def check_indexes_of(file: Path, options: Options, output: Output) -> None:
    """Check all indexes beside a record file, without printing their entries."""
    segment = segment_of(file)
    insane = _sanity(file, segment)
    for problem in insane or segment.compare_indexes(options.max_message_size):
        _add(Path(problem.path), problem, output)


def _sanity(file: Path, segment: SegmentView) -> list[IndexProblem]:
    problems = segment.sanity_check()
    if any(problem.is_padding for problem in problems) and is_being_written(file):
        return [problem for problem in problems if not problem.is_padding]
    return problems


def _print_sanity(file: Path, segment: SegmentView, output: Output) -> None:
    problems = [p for p in _sanity(file, segment) if Path(p.path) == file.absolute()]
    for problem in problems:
        _add(file, problem, output)
    if not problems:
        output.say(f"{file} passed sanity check.")


def _mismatches(
    file: Path, segment: SegmentView, options: Options, output: Output
) -> list[IndexProblem]:
    try:
        found = segment.compare_indexes(options.max_message_size)
    except FileNotFoundError:
        output.problems.add(
            Heading.INDEX, file, "there is no record file beside it to compare with"
        )
        return []
    return [problem for problem in found if Path(problem.path) == file.absolute()]


def _add(file: Path, problem: IndexProblem, output: Output) -> None:
    output.problems.add(_HEADINGS.get(problem.flaw, Heading.INDEX), file, problem.detail)
