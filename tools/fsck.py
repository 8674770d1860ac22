"""`pykafkalog fsck`: checks log directories, says what a restart would do, and can do it at once.

Without `--repair` it changes nothing, so it may run beside a broker. A repair needs the directory's
lock (no broker may run on it) and first copies everything that it is going to cut or drop.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import storage
from storage.check.findings import PartitionVerdict
from storage.check.log_dir import LogDirCheck
from storage.directory_kind import DirectoryKind, directory_kind
from storage.errors import DirectoryLocked, StorageError
from storage.os_filesystem import OsFileSystem
from tools.clock import WallClock
from tools.fsck_report import print_json, print_text, problems
from tools.progress import progress_bar
from tools.usage import command_parser

EXAMPLES = """\
  pykafkalog fsck /tmp/kafka-logs              a verdict on every partition
  pykafkalog fsck /disk1/kafka /disk2/kafka    whether they belong together, too
  pykafkalog fsck /tmp/kafka-logs/orders-0     one partition
  pykafkalog fsck --records --json DIR         decode every record; JSON lines
  pykafkalog fsck --from-start DIR             what a recovery of all would do
  pykafkalog fsck --repair DIR                 as a restart, with a backup

verdicts:
  sound              nothing is wrong, a restart changes nothing
  heals              a restart puts it right and loses no record
  loses records      a restart cuts or drops bytes of record files
  stays damaged      something is wrong that a restart does not look at
  blocks the start   a broker does not come up with it, a repair leaves it alone

With --json: objects with "problem" are findings of a directory, those with
"partition" have a "verdict" (the words above), "findings", "actions" (what a
restart does) and "bytes_lost".

exit code: 0 no problems; 1 problems were found (with --repair: and repaired as
far as they can be); 2 nothing could be checked or the repair failed, standard
error says why"""

CANNOT = 2


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    text = "Check log directories, tell what a restart would do, repair with a backup."
    parser = command_parser(commands, "fsck", text=text, examples=EXAMPLES)
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
    parser.add_argument(
        "--all", action="store_true", help="list sound partitions even when there are many"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check, report, repair if asked; return the exit code (see `EXAMPLES`)."""
    # The rehearsed recovery logs as in a broker; here its findings are reported in order instead.
    logging.getLogger(storage.__name__).addHandler(logging.NullHandler())
    paths = [str(Path(directory).absolute()) for directory in args.directories]
    for path in paths:
        if not Path(path).is_dir():
            what = "is no directory" if Path(path).exists() else "does not exist"
            return _failed(f"{path} {what}; name a directory of log.dirs, or one partition's")
    try:
        for path in paths if args.repair else ():
            kind = directory_kind(OsFileSystem(), path)
            if kind not in (DirectoryKind.LOG_DIR, DirectoryKind.PARTITION):
                return _failed(
                    f"{path} is {kind.value}, so nothing was repaired; name a directory of"
                    " log.dirs, or one partition's"
                )
        return _check(args, paths)
    except DirectoryLocked as error:
        return _failed(f"{error}. Stop the broker before a repair")
    except PermissionError as error:
        return _failed(f"no permission for {error.filename}: run it as the owner of the files")
    except (OSError, StorageError) as error:
        return _failed(str(error))


def _failed(why: str) -> int:
    print(f"pykafkalog fsck: {why}", file=sys.stderr)
    return CANNOT


def _check(args: argparse.Namespace, paths: list[str]) -> int:
    read = [0]
    advance: Callable[..., None] = lambda _amount, absolute=False: None  # noqa: E731

    def progress(amount: int) -> None:
        read[0] += amount
        advance(read[0], absolute=True)

    check = LogDirCheck(
        OsFileSystem(),
        WallClock(),
        Random(),
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
        if args.json:
            print_json(check.findings, verdicts)
        else:
            print_text(check.findings, verdicts, in_use=check.in_use, every=args.all)
        sound = all(verdict.is_sound for verdict in verdicts) and not problems(check.findings)
        if args.repair:
            _repair(args, check, verdicts)
    finally:
        if args.repair:
            check.unlock()
    return 0 if sound else 1


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
