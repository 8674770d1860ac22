"""Whatever reads a batch takes the forms of compressed records that Kafka takes, and no others."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from protocol.errors import KafkaError
from protocol.records.batch import read_header
from protocol.records.down_conversion import down_convert
from protocol.records.errors import RecordsError
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.scan import fields_of
from protocol.records.search import first_at_or_after
from storage.cleaner.errors import UncleanableLog
from storage.cleaner.opening import open_records
from storage.log.opening import Opening, TopicRules
from storage.reader import PartitionView
from storage.reader.columns import batch_columns
from storage.reader.scan import CorruptLog, ScanRequest
from tests.support.compressed_forms import FORMS, NOW, REFUSED_HERE, Form, batch_of, some_values
from tests.support.scanning import scanned
from tests.unit.storage.cleaner.test_opening import frames_of, rows_of

Values = list[bytes | None]


def produced(batch: bytes, _: Path, *, codec: int | None = None) -> Values:
    opened = Opening(
        batch, TopicRules("t-0", 1 << 20, 1 << 30, codec, None, False, None, None)
    ).run()
    return [record.value for record in iter_records(opened.rebuilt or batch)]


def recompressed(batch: bytes, at: Path) -> Values:
    return produced(batch, at, codec=0)


def one_by_one(batch: bytes, _: Path) -> Values:
    return [record.value for record in iter_records(batch)]


def scanned_fields(batch: bytes, _: Path) -> Values:
    header = read_header(batch)
    payload = payload_of(batch, 0, header)
    assert len(fields_of(payload, header).timestamps) == header.record_count
    return one_by_one(batch, _)


def searched(batch: bytes, _: Path) -> Values:
    assert first_at_or_after(batch, 0, NOW) == (0, NOW)
    return one_by_one(batch, _)


def converted_down(batch: bytes, _: Path) -> Values:
    if read_header(batch).codec == 4:
        return one_by_one(batch, _)  # zstd has no older format
    converted = down_convert(batch, 1)
    return [record.value for record in iter_records(converted.records)]


def cleaned(batch: bytes, _: Path) -> Values:
    """The values as the cleaner reads them from two such batches beside each other."""
    frames = frames_of([batch, batch])
    found = [
        (index, row[2])
        for opened in open_records(frames, batch_columns(frames), np.ones(2, np.bool_))
        for index, row in rows_of(frames, opened)
    ]
    values = [value for index, value in found if index == 0]
    assert values == [value for index, value in found if index == 1]
    return values


def in_arrow(batch: bytes, at: Path) -> Values:
    (at / "t-0").mkdir()
    (at / "t-0" / f"{0:020}.log").write_bytes(batch)
    return [row.value for row in scanned(ScanRequest(directories=(str(at),)))]


def viewed(batch: bytes, at: Path) -> Values:
    (at / "t-0").mkdir()
    (at / "t-0" / f"{0:020}.log").write_bytes(batch)
    return [record.value for record in PartitionView(at / "t-0").records()]


READERS = [
    *(produced, recompressed, one_by_one, scanned_fields, searched),
    *(converted_down, cleaned, in_arrow, viewed),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_s_fmt_6_every_reader_takes_what_kafka_takes(
    form: Form, read: Callable[[bytes, Path], Values], tmp_path: Path
) -> None:
    for number, values in enumerate(some_values()):
        at = tmp_path / str(number)
        at.mkdir()
        batch = batch_of(form, values)
        if form.is_taken and form.name not in REFUSED_HERE:
            assert read(batch, at) == values
        else:
            with pytest.raises((RecordsError, KafkaError, UncleanableLog, CorruptLog)):
                read(batch, at)
