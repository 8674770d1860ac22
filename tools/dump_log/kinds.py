"""Which files can be read, and by which printer."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage.reader import (
    CLEAN_SHUTDOWN_FILE,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_segment_file,
)
from tools.dump_log import indexes, record_file, small_files
from tools.dump_log.options import Options
from tools.dump_log.output import Output

Printer = Callable[[Path, Options, Output], None]
"""Prints a file's content; adds its problems to those of the output."""

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state"
_KRAFT_SNAPSHOT: Final = re.compile(r"\d{20}-\d{10}\.checkpoint(\.deleted)?")

_BY_SUFFIX: Final[dict[str, Printer]] = {
    LOG_SUFFIX: record_file.print_segment,
    INDEX_SUFFIX: indexes.print_offset_index,
    TIME_INDEX_SUFFIX: indexes.print_time_index,
    TXN_INDEX_SUFFIX: indexes.print_txn_index,
    SNAPSHOT_SUFFIX: small_files.print_producer_snapshot,
}
_BY_NAME: Final[dict[str, Printer]] = {
    LEADER_EPOCH_CHECKPOINT: small_files.print_leader_epochs,
    PARTITION_METADATA: small_files.print_partition_metadata,
    META_PROPERTIES: small_files.print_meta_properties,
    CLEAN_SHUTDOWN_FILE: small_files.print_clean_shutdown_marker,
    QUORUM_STATE: small_files.print_quorum_state,
    BOOTSTRAP_CHECKPOINT: record_file.print_kraft_snapshot,
    **dict.fromkeys(OFFSET_CHECKPOINTS, small_files.print_offset_checkpoint),
}


def printer_of(file: Path) -> Printer | None:
    """Return the printer for a file's name; None if it is not a file of a log."""
    named = _BY_NAME.get(file.name)
    if named is not None:
        return named
    if _KRAFT_SNAPSHOT.fullmatch(file.name):
        return record_file.print_kraft_snapshot
    parsed = parse_segment_file(file.name)
    return None if parsed is None else _BY_SUFFIX[parsed.suffix]
