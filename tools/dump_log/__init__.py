"""`pykafkalog dump-log`: prints the files of a log, line for line as Kafka's DumpLogSegments.

    options      the command line: Kafka's option names, and short ones
    kinds        which printer reads which file
    record_file  .log, and the snapshots of KRaft: batches and records, a megabyte at a time
    indexes      .index .timeindex .txnindex
    small_files  .snapshot, checkpoints, partition.metadata, meta.properties …
    problems     problems of the files, printed at the end on standard error in Kafka's words
    output       lines of text, or JSON objects

The command only reads, through `storage.reader`; a broker may be running on the files. Deliberate
differences from Kafka's tool: damage ends with exit code 1, never with a stack trace, and the rest
is still shown; values that Java prints as `OptionalLong[5]` or `OptionalLong.empty` are `5` and
`none`; bytes that are not UTF-8 are shown as `\\xff`; a segment that begins above offset 0 is not
called a gap; an offset index that holds only pre-sized zeros is called empty.
"""

from tools.dump_log.command import run
from tools.dump_log.options import add_arguments

__all__ = ["add_parser"]

import argparse


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    add_arguments(commands).set_defaults(run=run)
