"""The transaction index of a cleaned segment, held against its log after a start that knew nothing.

An entry outlives the data of its transaction by one cleaning, as Kafka writes it (S-CMP-7).
"""

import pytest

from config.topic_config import TopicConfig
from storage.cleaner.aborted import table_of
from storage.errors import IndexKind
from storage.log.log import Log
from storage.waits import at_once
from tests.support.compacted_log import CompactedLog


def opened(built: CompactedLog) -> tuple[Log, list[IndexKind]]:
    """Started on what was left in order; and where it notes the damage that it finds."""
    log = built.stopped()
    log.update_high_watermark(log.log_end_offset)
    found: list[IndexKind] = []
    log.connect(failed=lambda _: None, rolled=lambda *_: None, damaged=found.append)
    return log, found


def aborted_at(log: Log) -> list[int]:
    """First offsets of the aborted transactions that readers get."""
    table = table_of(log.reader.packed_aborted(log.log_end_offset))
    found: list[int] = table["first_offset"].tolist()
    return found


def cleaned_with_aborted() -> CompactedLog:
    """Two aborted transactions of one producer, cleaned once: of the second a header is left."""
    built = CompactedLog()
    for sequence in (0, 1):
        built.transactional(7, sequence, (b"gone", b"1"))
        built.abort(7)
    built.keys(1)
    built.clean()
    assert [one.key for one in built.seen()] == [b"1"]
    return built


def test_s_cmp_7_an_entry_that_outlived_its_data_is_no_damage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    built = cleaned_with_aborted()
    assert len(built.log.segments.first.aborted.index.all_aborted()) == 2
    log, damaged = opened(built)
    assert aborted_at(log) == [2]
    assert damaged == []
    assert "Damaged" not in caplog.text
    assert len(log.segments.first.aborted.index.all_aborted()) == 1


def test_s_cmp_7_an_entry_that_no_marker_belongs_to_is_damage() -> None:
    built = cleaned_with_aborted()
    index = built.log.segments.first.aborted.index
    data = bytearray(built.fs.snapshot()[index.path])
    data[9] ^= 1  # the producer id's last byte
    at_once(built.log.flush())
    at_once(built.log.close())
    built.fs.write_bytes(index.path, bytes(data))
    log, damaged = opened(built)
    assert aborted_at(log) == [2]
    assert damaged == [IndexKind.TRANSACTION]


def test_in_a_log_that_is_not_compacted_it_is_damage() -> None:
    built = cleaned_with_aborted()
    built.config = TopicConfig()
    log, damaged = opened(built)
    assert aborted_at(log) == [2]
    assert damaged == [IndexKind.TRANSACTION]
