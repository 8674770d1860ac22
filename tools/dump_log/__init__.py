"""`pykafkalog dump-log`: what is in the files of a log, line for line as Kafka's DumpLogSegments.

    options      the command line: Kafka's option names, and short ones
    kinds        which printer reads which file
    record_file  .log, and the snapshots of KRaft: batches and records, a megabyte at a time
    indexes      .index .timeindex .txnindex
    small_files  .snapshot, checkpoints, partition.metadata, meta.properties …
    problems     what is wrong, told at the end on standard error in Kafka's words
    output       lines of text, or JSON objects

Reads files only, through `storage.reader`; a broker may be running on them. What differs from
Kafka's tool, on purpose: damage ends with exit code 1, never with a stack trace, and the rest is
still shown; values that Java prints as `OptionalLong[5]` or `OptionalLong.empty` are `5` and
`none`; bytes that are no UTF-8 are shown as `\\xff`; a segment that begins above offset 0 is not
called a gap; an offset index of nothing but its pre-sized zeros is called empty.
"""

from tools.dump_log.command import run
from tools.dump_log.options import add_arguments

__all__ = ["add_parser"]

import argparse


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    add_arguments(commands).set_defaults(run=run)
