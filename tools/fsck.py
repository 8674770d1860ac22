"""`pykafkalog fsck`: what is wrong with log directories, what a restart would do, and doing it now.

Nothing is changed without `--repair`, so it may be run beside a broker. A repair needs the
directory's lock (no broker runs on it) and first copies everything that it is going to cut or drop.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from storage.check.findings import LOSES_RECORDS, Finding, PartitionVerdict
from storage.check.log_dir import LogDirCheck
from storage.errors import DirectoryLocked, StorageError
from storage.os_filesystem import OsFileSystem
from tools.errors import CommandError
from tools.progress import progress_bar

EXAMPLES = """\
examples:
  pykafkalog fsck /tmp/kafka-logs              a verdict on every partition
  pykafkalog fsck /tmp/kafka-logs/orders-0     on one
  pykafkalog fsck --records --json DIR         decode every record; one JSON object a line
  pykafkalog fsck --repair DIR                 do what a restart would do, with a backup

exit code: 0 all is well; 1 problems were found (with --repair: and repaired); 2 it failed"""

CANNOT = 2


class _Clock:
    """Time of day, for backups' names and deletions."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    text = "Check log directories, tell what a restart would do, repair with a backup."
    parser = commands.add_parser(
        "fsck",
        help=text,
        description=text,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "directories", nargs="+", metavar="DIR", help="log or partition directories"
    )
    parser.add_argument("--records", action="store_true", help="decode every record, too")
    parser.add_argument(
        "--from-start",
        action="store_true",
        help="trust neither recovery points nor the clean-shutdown marker",
    )
    parser.add_argument("--repair", action="store_true", help="do what a restart would do, now")
    parser.add_argument(
        "--backup",
        metavar="DIR",
        help="where a repair keeps what it cuts (default: DIR.fsck-backup-<time> beside each DIR)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check, tell, repair if asked; see the exit codes."""
    paths = [str(Path(directory).absolute()) for directory in args.directories]
    for path in paths:
        if not Path(path).is_dir():
            raise CommandError(f"{path} is no directory")
    try:
        return _check(args, paths)
    except DirectoryLocked as error:
        raise CommandError(f"{error}. Stop the broker before a repair") from None
    except (OSError, StorageError) as error:
        print(f"pykafkalog fsck: {error}")
        return CANNOT


def _check(args: argparse.Namespace, paths: list[str]) -> int:
    read = [0]
    advance: Callable[..., None] = lambda _amount, absolute=False: None  # noqa: E731

    def progress(amount: int) -> None:
        read[0] += amount
        advance(read[0], absolute=True)

    check = LogDirCheck(
        OsFileSystem(),
        _Clock(),
        paths,
        records=args.records,
        from_start=args.from_start,
        progress=progress,
    )
    if args.repair:
        check.lock()
    try:
        with progress_bar("checking", check.total_bytes(), bytes_=True) as advance:
            verdicts = list(check.partitions())
        show: Any = _print_json if args.json else _print_text
        show(check, verdicts, args)
        sound = all(verdict.is_sound for verdict in verdicts) and not _problems(check.findings)
        if args.repair:
            _repair(args, check, verdicts)
    finally:
        if args.repair:
            check.unlock()
    return 0 if sound else 1


def _problems(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "problem"]


def _repair(args: argparse.Namespace, check: LogDirCheck, verdicts: list[PartitionVerdict]) -> None:
    stamp = time.strftime("%Y%m%d-%H%M%S")

    def backup_of(directory: str) -> str:
        if args.backup:
            return str(Path(args.backup).absolute() / Path(directory).name)
        return f"{directory.rstrip('/')}.fsck-backup-{stamp}"

    repaired = check.repair(verdicts, backup_of)
    if args.json:
        done = [str(action) for action in repaired.actions]
        print(json.dumps({"repaired": done, "backups": repaired.backups}))
        return
    for action in repaired.actions:
        print(f"done: {action}")
    for path in repaired.backups:
        print(f"kept: {path}")
    if not repaired.actions:
        print("Nothing had to be changed in any partition.")


def _print_json(check: LogDirCheck, verdicts: list[PartitionVerdict], _args: Any) -> None:
    for finding in check.findings:
        print(json.dumps(_finding(finding)))
    for verdict in verdicts:
        print(
            json.dumps(
                {
                    "directory": verdict.directory,
                    "partition": str(verdict.topic_partition),
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


def _print_text(check: LogDirCheck, verdicts: list[PartitionVerdict], _args: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for finding in check.findings:
        console.print(f"[yellow]{finding.severity}[/] {finding}", soft_wrap=True)
    if check.in_use:
        console.print("A broker is running here: what its clean stop will settle is not counted.")
    table = Table("partition", "offsets", "batches", "bytes", "verdict", "a restart would")
    for verdict in verdicts:
        kinds = sorted({str(action.kind) for action in verdict.actions})
        table.add_row(
            str(verdict.topic_partition),
            f"{verdict.log_start_offset:,} to {verdict.log_end_offset:,}",
            f"{verdict.batches:,}",
            f"{verdict.bytes:,}",
            "[green]sound[/]" if verdict.is_sound else "[red]damaged[/]",
            ", ".join(kinds) if kinds else "change nothing",
        )
    console.print(table)
    for verdict in verdicts:
        for finding in verdict.findings:
            console.print(f"[yellow]{finding.severity}[/] {finding}", soft_wrap=True)
        for action in verdict.actions:
            colour = "red" if action.kind in LOSES_RECORDS else "cyan"
            console.print(f"[{colour}]restart:[/] {action}", soft_wrap=True)
