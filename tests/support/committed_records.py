"""The records that a read_committed consumer gets of a log, filtered as by Kafka's `Fetcher`."""

from functools import partial

from protocol.records.batch import iter_batches
from protocol.records.control import ControlType, parse_control_type
from protocol.records.record import Record, iter_records
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice
from storage.log_manager import LogManager
from tests.support.crash_lab import answered


def committed_records(
    log: Log, manager: LogManager | None = None, *, most: int = 1 << 20
) -> list[Record]:
    """Return records from the log start to the last stable offset, by reads of `most` bytes.

    With `manager`, repeat a read while an index is repaired.
    """
    found: list[Record] = []
    offset = log.log_start_offset
    while True:
        read = partial(log.read, offset, most, FetchIsolation.TXN_COMMITTED)
        info = read() if manager is None else answered(manager, read)
        if not info.records:
            return found
        data = info.records.read() if isinstance(info.records, FileSlice) else info.records
        begins = sorted((one.first_offset, one.producer_id) for one in info.aborted or ())
        aborted: set[int] = set()
        for at, header in iter_batches(data):
            while begins and begins[0][0] <= header.last_offset:
                aborted.add(begins.pop(0)[1])
            offset = header.last_offset + 1
            records = list(iter_records(data, at))
            if header.is_control:
                kinds = [parse_control_type(record.key) for record in records]
                if ControlType.ABORT in kinds:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += records
