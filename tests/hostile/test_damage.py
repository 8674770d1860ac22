"""Files that are damaged beside a good log, while the broker is down or while it serves."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.records.record import iter_records
from tests.hostile.attacks import ask, create_topic, produce
from tests.hostile.watch import watched
from tests.support.broker_process import BrokerProcess
from tests.support.raw_transactions import RawTransaction
from tests.support.read_requests import one_fetch

TOPIC = "victim"
RECORDS = 600
SETTINGS = {
    "log.index.interval.bytes": "100",
    "log.segment.bytes": "40000",
    "log.retention.ms": "-1",  # the records are old
}
READ_COMMITTED = 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With small segments, many index entries and `RECORDS` records of known content."""
    with BrokerProcess(tmp_path, SETTINGS) as process:
        create_topic(process.port, TOPIC)
        for number in range(RECORDS):
            batch = build_batch([(1_700_000_000_000 + number, None, _value(number), ())])
            assert produce(process.port, TOPIC, batch) == ErrorCode.NONE
        yield process


def _value(number: int) -> bytes:
    return f"{number:06}".encode() * 20


def _files(broker: BrokerProcess, suffix: str) -> list[Path]:
    found = sorted((broker.log_dir / f"{TOPIC}-0").glob(f"*{suffix}"))
    assert found, f"no {suffix} file"
    return found


def _read_from(port: int, offset: int, isolation: int = 0) -> list[tuple[int, bytes]]:
    """Return the records of one fetch, without aborted transactions, as a consumer does."""
    request = one_fetch(TOPIC, offset, size=2_000, isolation_level=isolation)
    (part,) = ask(port, ApiKey.FETCH, 11, request).responses[0].partitions
    assert part.error_code == ErrorCode.NONE, ErrorCode(part.error_code).name
    aborted = {txn.producer_id for txn in part.aborted_transactions or ()}
    data = bytes(part.records or b"")
    return [
        (record.offset, bytes(record.value or b""))
        for at, header in iter_batches(data)
        if not header.is_control and not (header.is_transactional and header.producer_id in aborted)
        for record in iter_records(data, at)
        if record.offset >= offset
    ]


def _every_offset_is_right(broker: BrokerProcess) -> None:
    for offset in range(RECORDS):
        found = _read_from(broker.port, offset)
        while not found:  # behind a damaged index there is nothing until it is rebuilt
            time.sleep(0.05)
            found = _read_from(broker.port, offset)
        assert found[0] == (offset, _value(offset))


@contextmanager
def _stopped(broker: BrokerProcess) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


def test_a_wrong_bit_in_every_index(broker: BrokerProcess) -> None:
    with _stopped(broker):
        for number, path in enumerate(_files(broker, ".index")):
            content = bytearray(path.read_bytes())
            if content:
                at = (number * 7) % (len(content) // 8) * 8 + (2, 3, 6, 7)[number % 4]
                content[at] ^= 1 << (number % 8)
                path.write_bytes(content)
    with watched(broker):
        _every_offset_is_right(broker)


def test_an_index_that_ends_while_it_is_mapped(broker: BrokerProcess) -> None:
    _every_offset_is_right(broker)
    with watched(broker):
        for suffix in (".index", ".timeindex"):
            for path in _files(broker, suffix):
                os.truncate(path, 0)
        _every_offset_is_right(broker)


@pytest.mark.parametrize("how", ["emptied", "missing", "damaged"])
def test_a_transaction_index_is_not_believed(broker: BrokerProcess, how: str) -> None:
    client = RawTransaction("id", version=2)
    client.begin(broker.port)
    for number in range(20):
        client.send(broker.port, TOPIC, 0, b"aborted" * 300, at=1_700_000_000_000 + number)
        client.end(broker.port, commit=False)
        client.wait_at_rest(broker.port)
    end = RECORDS + 40
    last = build_batch([(1_700_000_000_000, None, b"last" * 9_000, ())])
    assert produce(broker.port, TOPIC, last) == ErrorCode.NONE  # rolls
    assert produce(broker.port, TOPIC, last) == ErrorCode.NONE
    with _stopped(broker):
        for path in _files(broker, ".txnindex"):
            if how == "missing":
                path.unlink()
            elif how == "emptied":
                path.write_bytes(b"")
            elif path.stat().st_size:
                content = bytearray(path.read_bytes())
                content[5] ^= 0xFF
                path.write_bytes(content)
    with watched(broker):
        offset = RECORDS
        seen: list[bytes] = []
        while offset < end:
            found = _read_from(broker.port, offset, READ_COMMITTED)
            seen += [value for _, value in found]
            offset = found[-1][0] + 1 if found else offset + 1
        assert not any(b"aborted" in value for value in seen)
