"""`pykafkalog dump-log`: what is in the files of a log, in the form of Kafka's DumpLogSegments.

Reads files only; a broker may be running on them. Takes any file of a segment (.log .index
.timeindex .txnindex .snapshot), a leader-epoch-checkpoint, or a whole partition directory.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from protocol.records.compression import CompressionType
from protocol.records.errors import RecordsError
from storage.reader import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Batch,
    CheckpointError,
    CorruptSnapshot,
    PartitionView,
    SegmentView,
    parse_segment_file,
)
from tools.errors import CommandError

if TYPE_CHECKING:
    from tools.decoders import Decoder

EXAMPLES = """\
  pykafkalog dump-log /tmp/kafka-logs/orders-0                        every file of a partition
  pykafkalog dump-log --deep /tmp/kafka-logs/orders-0/*.log           with the records
  pykafkalog dump-log --json --deep orders-0 | jq .payload            one JSON object a line
  pykafkalog dump-log --check orders-0                                do the indexes fit the log?
  pykafkalog dump-log --offsets-decoder __consumer_offsets-7/*.log    groups and commits in words"""

Row = dict[str, Any]
"""One line, in the order of its fields."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    text = "Show the files of a log: batches, records, indexes, producer snapshots."
    parser = commands.add_parser(
        "dump-log",
        help=text,
        description=text,
        epilog=f"examples:\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files or partition directories")
    parser.add_argument("--deep", action="store_true", help="records, too (opens every batch)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--check", action="store_true", help="compare indexes with their log")
    words = parser.add_mutually_exclusive_group()
    words.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="records of __consumer_offsets in words (with --deep)",
    )
    words.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="records of __transaction_state in words (with --deep)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """1 when something is wrong with what was read."""
    sound = True
    decoder = _decoder(args)
    for path in args.paths:
        sound &= dump(
            path, sys.stdout, deep=args.deep, as_json=args.json, check=args.check, decoder=decoder
        )
    return 0 if sound else 1


def _decoder(args: argparse.Namespace) -> "Decoder | None":
    if not args.offsets_decoder and not args.transaction_log_decoder:
        return None
    from tools import decoders

    return decoders.decode_offsets if args.offsets_decoder else decoders.decode_transactions


def dump(
    path: str,
    out: TextIO,
    *,
    deep: bool = False,
    as_json: bool = False,
    check: bool = False,
    decoder: "Decoder | None" = None,
) -> bool:
    """Write what `path` holds; False when some of it is damaged. A `decoder` implies `deep`.

    Raises CommandError when there is no such file, or it is not one of a log.
    """
    target = Path(path)
    if target.is_dir():
        files = [entry for entry in sorted(target.iterdir()) if _reader(entry) is not None]
        if not files:
            raise CommandError(f"{path} holds no files of a log")
    elif target.exists():
        files = [target]
    else:
        raise CommandError(f"{path} does not exist")
    sound = True
    for file in files:
        sound &= _dump_file(file, out, deep=deep, as_json=as_json, check=check, decoder=decoder)
    return sound


def _dump_file(
    file: Path,
    out: TextIO,
    *,
    deep: bool,
    as_json: bool,
    check: bool,
    decoder: "Decoder | None",
) -> bool:
    reader = _reader(file)
    if reader is None:
        raise CommandError(f"{file} is not a file of a log")
    if decoder is not None and reader is _log:
        reader, deep = partial(_log, decoder=decoder), True
    if not as_json:
        print(f"Dumping {file}", file=out)
    sound = True
    try:
        for row in reader(file, deep):
            sound &= row.get("isvalid", True) is True and "problem" not in row
            print(_json(file, row) if as_json else _text(row), file=out)
    except (CorruptSnapshot, CheckpointError) as error:
        print(_json(file, {"problem": str(error)}) if as_json else str(error), file=out)
        return False
    if check and file.suffix == LOG_SUFFIX:
        for problem in _segment(file).check_indexes():
            print(_json(file, {"problem": problem}) if as_json else problem, file=out)
            sound = False
    return sound


def _reader(file: Path) -> Callable[[Path, bool], Iterator[Row]] | None:
    if file.name == LEADER_EPOCH_CHECKPOINT:
        return _epochs
    parsed = parse_segment_file(file.name)
    return None if parsed is None else _READERS[parsed.suffix]


def _segment(file: Path) -> SegmentView:
    parsed = parse_segment_file(file.name)
    assert parsed is not None
    return PartitionView.holding(str(file.absolute())).segment(parsed.base_offset, parsed.state)


def _log(file: Path, deep: bool, decoder: "Decoder | None" = None) -> Iterator[Row]:
    segment = _segment(file)
    yield {"Log starting offset": segment.base_offset}
    for batch in segment.batches():
        yield _batch_row(batch)
        if deep:
            yield from _record_rows(batch, decoder)
    left = segment.size - segment.valid_bytes
    if left:
        why = segment.ended.value if segment.ended is not None else "unread"
        yield {"problem": f"Found {left} invalid bytes at the end of {file.name} ({why})"}


def _batch_row(batch: Batch) -> Row:
    header = batch.header
    kind = "LogAppendTime" if header.timestamp_type else "CreateTime"
    row: Row = {"baseOffset": header.base_offset, "lastOffset": header.last_offset}
    if header.magic >= 2:
        row |= {
            "count": header.record_count,
            "baseSequence": header.base_sequence,
            "lastSequence": header.last_sequence,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "partitionLeaderEpoch": header.partition_leader_epoch,
            "isTransactional": header.is_transactional,
            "isControl": header.is_control,
            "deleteHorizonMs": header.delete_horizon_ms,
        }
    return row | {
        "position": batch.position,
        kind: header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": CompressionType.name_of(header.attributes & 7),
        "crc": header.crc,
        "isvalid": batch.valid,
    }


def _record_rows(batch: Batch, decoder: "Decoder | None") -> Iterator[Row]:
    header = batch.header
    words = None if header.is_control else decoder
    kind = "LogAppendTime" if header.timestamp_type else "CreateTime"
    try:
        for at, record in enumerate(batch.records()):
            key, value = (
                (_shown(record.key), _shown(record.value))
                if words is None
                else words(record.key, record.value)
            )
            sequence = -1 if header.base_sequence < 0 else (header.base_sequence + at) & 0x7FFFFFFF
            yield {
                "|": "",
                "offset": record.offset,
                kind: record.timestamp,
                "keySize": -1 if record.key is None else len(record.key),
                "valueSize": -1 if record.value is None else len(record.value),
                "sequence": sequence,
                "headerKeys": [name for name, _ in record.headers],
                "key": key,
                "payload": value,
            }
    except RecordsError as error:
        yield {"problem": f"The batch at offset {header.base_offset} cannot be opened: {error}"}


def _offset_index(file: Path, _deep: bool) -> Iterator[Row]:
    for offset, position in _segment(file).offset_index():
        yield {"offset": offset, "position": position}


def _time_index(file: Path, _deep: bool) -> Iterator[Row]:
    for timestamp, offset in _segment(file).time_index():
        yield {"timestamp": timestamp, "offset": offset}


def _txn_index(file: Path, _deep: bool) -> Iterator[Row]:
    for txn in _segment(file).aborted():
        yield {
            "version": 0,
            "producerId": txn.producer_id,
            "firstOffset": txn.first_offset,
            "lastOffset": txn.last_offset,
            "lastStableOffset": txn.last_stable_offset,
        }


def _snapshot(file: Path, _deep: bool) -> Iterator[Row]:
    parsed = parse_segment_file(file.name)
    assert parsed is not None
    for entry in PartitionView.holding(str(file.absolute())).producers(parsed.base_offset):
        open_since = entry.current_txn_first_offset
        row: Row = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": None if open_since < 0 else open_since,
            "lastTimestamp": entry.last_timestamp,
        }
        last = entry.last_batch
        if last is not None:
            row |= {
                "firstSequence": last.first_sequence,
                "lastSequence": last.last_sequence,
                "lastOffset": last.last_offset,
                "offsetDelta": last.offset_delta,
                "timestamp": last.timestamp,
            }
        yield row


def _epochs(file: Path, _deep: bool) -> Iterator[Row]:
    for entry in PartitionView.holding(str(file.absolute())).leader_epochs():
        yield {"leaderEpoch": entry.epoch, "startOffset": entry.start_offset}


_READERS: dict[str, Callable[[Path, bool], Iterator[Row]]] = {
    LOG_SUFFIX: _log,
    INDEX_SUFFIX: _offset_index,
    TIME_INDEX_SUFFIX: _time_index,
    TXN_INDEX_SUFFIX: _txn_index,
    SNAPSHOT_SUFFIX: _snapshot,
}


def _shown(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _text(row: Row) -> str:
    if "problem" in row:
        return str(row["problem"])
    if "|" in row:
        # A null key or value has no field, as in Kafka's tool.
        row = {name: value for name, value in row.items() if value is not None}
        row.pop("|")
        return "| " + _pairs(row)
    return _pairs(row)


def _pairs(row: Row) -> str:
    return " ".join(f"{name}: {_word(value)}" for name, value in row.items())


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(value) + "]"
    return "none" if value is None else str(value)


def _json(file: Path, row: Row) -> str:
    row = {name: value for name, value in row.items() if name != "|"}
    return json.dumps({"file": file.name, **row})
