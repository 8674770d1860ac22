"""Microseconds per operation on record batches: `.venv/bin/python scripts/bench/records.py`."""

import random
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from protocol.records import chain, scan_numpy, scan_python
from protocol.records.batch import (
    BATCH_OVERHEAD,
    iter_batches,
    read_header,
    set_log_append_time,
    set_place,
    verify_crc,
)
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch, validated_max_timestamp
from protocol.records.scan import fields_of
from protocol.records.search import first_at_or_after

NOW = 1_790_000_000_000
RULES = RecordRules()


def batch(
    size: int, record: int, codec: CompressionType = CompressionType.NONE, *, mixed: bool = False
) -> bytearray:
    rng = random.Random(1)
    words = [rng.randbytes(4).hex().encode() for _ in range(500)]

    def value() -> bytes:
        length = rng.randrange(record // 2, record * 3 // 2) if mixed else record
        return b" ".join(rng.choice(words) for _ in range(length // 9 + 1))[:length]

    count = max(1, size // (record + 8))
    rows = [(NOW + i // 4, b"%08d" % i if mixed else None, value(), ()) for i in range(count)]
    return bytearray(build_batch(rows, codec=codec))


def microseconds(run: Callable[[], object]) -> float:
    timer = timeit.Timer(run)
    number = max(1, int(0.05 / max(timer.timeit(3) / 3, 1e-7)))
    return min(timer.repeat(5, number)) / number * 1e6


def operations(buf: bytearray) -> dict[str, Callable[[], object]]:
    header = read_header(buf)
    payload = bytes(memoryview(buf)[BATCH_OVERHEAD:])
    rows: dict[str, Callable[[], object]] = {
        "read_header": lambda: read_header(buf),
        "iter_batches": lambda: list(iter_batches(buf)),
        "verify_crc": lambda: verify_crc(buf, 0, header),
        "set_place": lambda: set_place(buf, header, 5, 1),
        "payload_of": lambda: payload_of(buf, 0, header),
        "payload_of, fields_of": lambda: fields_of(payload_of(buf, 0, header), header),
        "check_batch": lambda: check_batch(buf, 0, header, RULES),
        "first_at_or_after": lambda: first_at_or_after(buf, 0, header.max_timestamp),
    }
    if not header.is_compressed:
        rows["validated_max_timestamp"] = lambda: validated_max_timestamp(payload, header)
        starts = chain.record_starts(payload, header.record_count)
        rows["  starts only"] = lambda: chain.record_starts(payload, header.record_count)
        rows["  fields, python"] = lambda: scan_python.read_fields(payload, starts, NOW)
        rows["  fields, numpy"] = lambda: scan_numpy.read_fields(payload, starts, NOW)
    if len(buf) < 1 << 18:
        rows["iter_records (objects)"] = lambda: list(iter_records(buf))
        times = iter(range(NOW + 10_000_000, NOW + 100_000_000))
        rows["set_log_append_time"] = lambda: set_log_append_time(buf, 0, header, next(times))
    return rows


def main() -> None:
    for size in (16 << 10, 1 << 20):
        for record in (100, 1024):
            for codec in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
                for mixed in (False, True):
                    buf = batch(size, record, codec, mixed=mixed)
                    count = read_header(buf).record_count
                    shape = "mixed" if mixed else "fixed"
                    print(
                        f"\n{size >> 10} KB of {record} B {shape} records, {codec.name}: "
                        f"{count} records, {len(buf)} bytes"
                    )
                    for name, run in operations(buf).items():
                        took = microseconds(run)
                        print(f"  {name:24} {took:10.2f} us  {took / count * 1000:8.1f} ns/record")


if __name__ == "__main__":
    main()
