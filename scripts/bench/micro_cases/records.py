"""Functions on a record batch."""

from collections.abc import Callable
from functools import partial
from random import Random

from micro_cases.messages import NOW, Case, each
from protocol.records.batch import read_header, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch
from protocol.records.scan import fields_of
from protocol.records.search import first_at_or_after

CASES: dict[str, Case] = {}


def records_of(size: int, record: int, codec: CompressionType, mixed: bool) -> bytearray:
    """Build a batch: records of one size without keys, or of mixed sizes with keys."""
    rng = Random(1)
    words = [rng.randbytes(4).hex().encode() for _ in range(500)]

    def value() -> bytes:
        length = rng.randrange(record // 2, record * 3 // 2) if mixed else record
        return b" ".join(rng.choice(words) for _ in range(length // 9 + 1))[:length]

    rows = [
        (NOW + at // 4, b"%08d" % at if mixed else None, value(), ())
        for at in range(max(1, size // (record + 8)))
    ]
    return bytearray(build_batch(rows, codec=codec))


def record_case(name: str, prepare: Callable[[bytearray], Callable[[], object]]) -> None:
    for size, record, codec, mixed in (
        *((16 << 10, 100, codec, mixed) for codec in (0, 3) for mixed in (False, True)),
        *((1 << 20, 1024, codec, False) for codec in (0, 3, 4)),
    ):
        kind = CompressionType(codec)
        shape = f"{size >> 10} KB of {record} B{' mixed' * mixed} {kind.name.lower()}"
        CASES[f"records/{name}, {shape}"] = lambda _, made=(size, record, kind, mixed): each(
            prepare(records_of(*made))
        )


record_case("verify_crc", lambda buf: partial(verify_crc, buf, 0, read_header(buf)))
record_case(
    "check_batch", lambda buf: partial(check_batch, buf, 0, read_header(buf), RecordRules())
)
record_case(
    "fields_of",
    lambda buf: lambda: fields_of(payload_of(buf, 0, read_header(buf)), read_header(buf)),
)
record_case(
    "first_at_or_after",
    lambda buf: partial(first_at_or_after, buf, 0, read_header(buf).max_timestamp),
)
record_case("iter_records", lambda buf: lambda: list(iter_records(buf)))
