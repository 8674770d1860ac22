"""Messages of formats 0 and 1 as lines, made one by one, since such logs are old and small."""

import json
from pathlib import Path
from typing import Any

from protocol.records.batch import BatchHeader, read_header, verify_crc
from protocol.records.compression import CompressionType
from protocol.records.errors import RecordsError
from protocol.records.message_set import inner_checksums
from protocol.records.record import Record, iter_records
from storage.reader import Frames
from tools.dump_log.batch_lines import TIMESTAMP_TYPES
from tools.dump_log.options import Options
from tools.dump_log.output import Output
from tools.dump_log.problems import Heading


def lines_of(file: Path, frames: Frames, options: Options, output: Output) -> list[str]:
    """Return a line per message or wrapper, and with `deep` one per message inside."""
    lines = []
    for at in frames.starts:
        header = read_header(frames.chunk, at)
        position = frames.position + at
        valid = verify_crc(frames.chunk, at, header)
        if not valid:
            line = f"position: {position} offsets: {header.base_offset} to {header.last_offset}"
            output.problems.add(Heading.CHECKSUM, file, line)
        kind = "NoTimestampType" if header.magic == 0 else TIMESTAMP_TYPES[header.timestamp_type]
        lines.append(_shown(_batch_row(header, position, kind, valid), output))
        if options.deep:
            try:
                lines += _records(frames, at, header, kind, valid, options, output)
            except RecordsError as error:
                output.problems.add(Heading.RECORDS, file, f"position: {position}: {error}")
    return lines


def _batch_row(header: BatchHeader, position: int, kind: str, valid: bool) -> dict[str, Any]:
    return {
        "offset": header.last_offset,
        "position": position,
        kind: header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": CompressionType.name_of(header.attributes & 7),
        "crc": header.crc,
        "isvalid": valid,
    }


def _records(
    frames: Frames,
    at: int,
    header: BatchHeader,
    kind: str,
    valid: bool,
    options: Options,
    output: Output,
) -> list[str]:
    chunk = frames.chunk
    checksums = inner_checksums(chunk, at) if header.is_compressed else [(header.crc, valid)]
    pairs = zip(iter_records(chunk, at), checksums, strict=True)
    return [_record(record, kind, checksum, options, output) for record, checksum in pairs]


def _record(
    record: Record, kind: str, checksum: tuple[int, bool], options: Options, output: Output
) -> str:
    row: dict[str, Any] = {}
    if options.metadata:
        row |= {
            "offset": record.offset,
            kind: record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "isValid": checksum[1],
            "crc": checksum[0],
        }
    if options.contents:
        for name, data in (("key", record.key), ("payload", record.value)):
            if data is not None or output.is_json:
                row[name] = None if data is None else data.decode("utf-8", "backslashreplace")
    line = _shown(row, output)
    return line if output.is_json or not row else f"| {line}"


def _shown(row: dict[str, Any], output: Output) -> str:
    if output.is_json:
        return json.dumps(row, ensure_ascii=False)
    return " ".join(f"{name}: {_word(value)}" for name, value in row.items())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
