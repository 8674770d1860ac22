"""Runs `dump-log`: prints one file after the other, then their problems."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tools.dump_log.indexes import check_indexes_of
from tools.dump_log.kinds import printer_of
from tools.dump_log.options import Options, options_of
from tools.dump_log.output import JsonOutput, TextOutput
from tools.dump_log.problems import Heading, Problems
from tools.dump_log.record_file import print_segment
from tools.errors import CommandError

KNOWN = "dump-log reads files of a log by their names; `pykafkalog dump-log --help` lists them"


def run(args: argparse.Namespace) -> int:
    """Run the command; return 1 if a file is damaged or cannot be read. Raises CommandError."""
    options = options_of(args)
    words = [*args.paths, *(word for words in args.files for word in words.split(","))]
    paths = [Path(word.strip()) for word in words if word.strip()]
    if not paths:
        raise CommandError("which files? Name some, or a partition or log directory (see --help)")
    return 0 if dump(paths, options, sys.stdout, sys.stderr) else 1


def dump(paths: list[Path], options: Options, out: TextIO, errors: TextIO) -> bool:
    """Print the files of `paths`; return False if one is damaged or cannot be read.

    Raises CommandError for a path that does not exist, or a directory without files of a log.
    """
    files = [file for path in paths for file in _files(path)]
    problems = Problems()
    output = (JsonOutput if options.as_json else TextOutput)(out, problems)
    for file in files:
        output.begin(file)
        printer = printer_of(file)
        if printer is None:
            problems.add(Heading.UNKNOWN, file, KNOWN)
            continue
        try:
            printer(file, options, output)
            if options.check and printer is print_segment:
                check_indexes_of(file, options, output)
        except OSError as error:
            problems.add(Heading.CONTENT, file, error.strerror or str(error))
    output.end(errors)
    return not problems.is_damaged


def _files(path: Path) -> Iterator[Path]:
    try:
        if not path.is_dir():
            path.stat()
            yield path
            return
        files = [entry for entry in sorted(path.iterdir()) if printer_of(entry) is not None]
    except FileNotFoundError:
        raise CommandError(
            f"{path} does not exist; name a file of a log, a partition's directory or one of"
            " log.dirs"
        ) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    if not files:
        raise CommandError(
            f"{path} holds no files of a log. Name a partition directory (topic-0), "
            "a log directory (log.dirs) or files"
        )
    yield from files
