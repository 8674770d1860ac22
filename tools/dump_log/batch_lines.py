"""Batches of format 2 as lines: the fields and words of DumpLogSegments, from columns."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocol.records.compression import CompressionType
from protocol.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from protocol.types import MAX_SEQUENCE
from storage.reader.columns import Columns

TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
_CODECS: Final = tuple(CompressionType.name_of(codec) for codec in range(CODEC_MASK + 1))
_WORDS: Final = ("false", "true")

_TEMPLATE: Final = (
    "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d "
    "producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %s isControl: %s "
    "deleteHorizonMs: %s position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d "
    "isvalid: %s"
)


def lines_of(batches: Columns, valid: npt.NDArray[np.bool_], *, as_json: bool) -> list[str]:
    """Return a line per batch; `valid` has whether its checksum is right."""
    attributes = batches["attributes"]
    sequences = batches["base_sequence"].astype(np.int64)
    deltas = batches["last_offset"] - batches["base_offset"]
    lasts = np.where(sequences < 0, -1, (sequences + deltas) & MAX_SEQUENCE)
    flags = [
        (attributes & TRANSACTIONAL_BIT) != 0,
        (attributes & CONTROL_BIT) != 0,
    ]
    types = ((attributes & TIMESTAMP_TYPE_BIT) != 0).tolist()
    columns: list[list[Any]] = [
        batches["base_offset"].tolist(),
        batches["last_offset"].tolist(),
        batches["record_count"].tolist(),
        sequences.tolist(),
        lasts.tolist(),
        batches["producer_id"].tolist(),
        batches["producer_epoch"].tolist(),
        batches["partition_leader_epoch"].tolist(),
        *map(_words, flags),
        _horizons(batches, as_json),
        batches["position"].tolist(),
        [TIMESTAMP_TYPES[by_log] for by_log in types],
        batches["max_timestamp"].tolist(),
        batches["size"].tolist(),
        batches["magic"].tolist(),
        [_CODECS[codec] for codec in (attributes & CODEC_MASK).tolist()],
        batches["crc"].tolist(),
        _words(valid),
    ]
    rows = zip(*columns, strict=True)
    return list(map(_JSON.__mod__ if as_json else _TEMPLATE.__mod__, rows))


def _words(flag: npt.NDArray[np.bool_]) -> list[str]:
    return [_WORDS[value] for value in flag.tolist()]


def _horizons(batches: Columns, as_json: bool) -> list[str]:
    absent = "null" if as_json else "none"
    has = (batches["attributes"] & DELETE_HORIZON_BIT) != 0
    if not has.any():
        return [absent] * len(has)
    pairs = zip(has.tolist(), batches["base_timestamp"].tolist(), strict=True)
    return [str(time) if there else absent for there, time in pairs]


def json_template(template: str, strings: tuple[str, ...] = ()) -> str:
    """Return the template of a JSON object with the fields of a text template.

    A `%s` is filled with JSON (`true`, `null`) unless its field is in `strings`, which are quoted.
    The name of a field may itself come from the row (`%s: %d`).
    """
    words = template.split(" ")
    fields = []
    for name, value in zip(words[::2], words[1::2], strict=True):
        name = name.removesuffix(":")
        fields.append(f'"{name}": ' + (f'"{value}"' if name in strings else value))
    return "{" + ", ".join(fields) + "}"


_JSON: Final = json_template(_TEMPLATE, ("compresscodec",))
