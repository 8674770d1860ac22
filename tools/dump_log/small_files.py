"""Prints small files: producer snapshots, checkpoints, and files that identify a directory."""

import json
from pathlib import Path

from protocol.types import uuid_to_text
from storage.reader import (
    CheckpointError,
    CorruptSnapshot,
    InconsistentMetaProperties,
    LogDirView,
    PartitionView,
    parse_segment_file,
)
from tools.dump_log.options import Options
from tools.dump_log.output import Output
from tools.dump_log.problems import Heading

PRODUCER = (
    "producerId",
    "producerEpoch",
    "coordinatorEpoch",
    "currentTxnFirstOffset",
    "lastTimestamp",
)
LAST_BATCH = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp")


def print_producer_snapshot(file: Path, _options: Options, output: Output) -> None:
    """Print `<offset>.snapshot`: the partition's producer state."""
    try:
        parsed = parse_segment_file(file.name)
        assert parsed is not None
        view = PartitionView.holding(str(file.absolute()))
        entries = view.producers(parsed.base_offset, parsed.state)
    except CorruptSnapshot as error:
        _unreadable(file, error, output)
        return
    for entry in entries:
        since = entry.current_txn_first_offset
        row = (
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            None if since < 0 else since,
            entry.last_timestamp,
        )
        last = entry.last_batch
        if last is None:
            output.rows(PRODUCER, [row])
            continue
        batch = (
            last.first_sequence,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            last.timestamp,
        )
        output.rows(PRODUCER + LAST_BATCH, [row + batch])


def print_leader_epochs(file: Path, _options: Options, output: Output) -> None:
    """Print `leader-epoch-checkpoint`: the start offset of each leader epoch."""
    try:
        entries = PartitionView.holding(str(file.absolute())).leader_epochs()
    except CheckpointError as error:
        _unreadable(file, error, output)
        return
    if not entries:
        output.say(f"{file} is empty.")
    output.rows(("leaderEpoch", "startOffset"), [(e.epoch, e.start_offset) for e in entries])


def print_offset_checkpoint(file: Path, _options: Options, output: Output) -> None:
    """Print `*-offset-checkpoint` of a log directory: an offset per partition."""
    try:
        offsets = LogDirView(str(file.absolute().parent)).offsets(file.name)
    except CheckpointError as error:
        _unreadable(file, error, output)
        return
    if not offsets:
        output.say(f"{file} is empty.")
    rows = [(tp.topic, tp.partition, offset) for tp, offset in offsets.items()]
    output.rows(("topic", "partition", "offset"), rows)


def print_partition_metadata(file: Path, _options: Options, output: Output) -> None:
    """Print `partition.metadata`: the topic's id."""
    try:
        topic_id = PartitionView.holding(str(file.absolute())).topic_id()
    except CheckpointError as error:
        _unreadable(file, error, output)
        return
    if topic_id is not None:
        output.rows(("version", "topicId"), [(0, uuid_to_text(topic_id))])


def print_meta_properties(file: Path, _options: Options, output: Output) -> None:
    """Print `meta.properties`: the ids of the directory's broker and cluster."""
    try:
        meta = LogDirView(str(file.absolute().parent)).meta_properties()
    except InconsistentMetaProperties as error:
        _unreadable(file, error, output)
        return
    if meta is not None:
        row = (meta.version, meta.node_id, meta.cluster_id, meta.directory_id)
        output.rows(("version", "nodeId", "clusterId", "directoryId"), [row])


def print_clean_shutdown_marker(file: Path, _options: Options, output: Output) -> None:
    """Print `.kafka_cleanshutdown`: empty up to Kafka 3.6, then with the broker epoch."""
    _print_json_file(file, output, may_be_empty=True)


def print_quorum_state(file: Path, _options: Options, output: Output) -> None:
    """Print `quorum-state` of `__cluster_metadata`: a KRaft node's election state."""
    _print_json_file(file, output, may_be_empty=False)


def _print_json_file(file: Path, output: Output, *, may_be_empty: bool) -> None:
    text = file.read_bytes()
    if may_be_empty and not text.strip():
        output.say(f"{file} is empty.")
        return
    try:
        content = json.loads(text)
    except ValueError as error:
        output.problems.add(Heading.CONTENT, file, f"not JSON: {error}")
        return
    if not isinstance(content, dict):
        output.problems.add(Heading.CONTENT, file, "not a JSON object")
        return
    flat = [
        value if isinstance(value, int | str) else json.dumps(value) for value in content.values()
    ]
    output.rows(list(content), [flat])


def _unreadable(file: Path, error: Exception, output: Output) -> None:
    if isinstance(error, CheckpointError):
        text = f"line {error.line}: {error.reason}" if error.line else error.reason
    elif isinstance(error, CorruptSnapshot):
        text = error.reason
    else:
        text = str(error).removeprefix(f"{file.absolute()}: ")
    output.problems.add(Heading.CONTENT, file, text)
