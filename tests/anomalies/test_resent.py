"""Copies that a client itself made: each in another producer epoch, without a transaction."""

from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from tests.anomalies.resent import resent

Batch = tuple[list[str], int, int]
"""Values, producer id, producer epoch."""


def log_dir(directory: Path, batches: list[Batch], *, transactional: bool = False) -> Path:
    partition = directory / "in-0"
    partition.mkdir()
    data, offset = b"", 0
    for values, producer_id, epoch in batches:
        data += build_batch(
            [(0, None, value.encode(), ()) for value in values],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=transactional,
        )
        offset += len(values)
    (partition / f"{0:020}.log").write_bytes(data)
    return directory


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        ([(["a", "b"], 7, 0), (["b"], 7, 1)], {"in-0": ["b"]}),
        ([(["a"], 7, 0), (["a"], 8, 0)], {"in-0": ["a"]}),
        ([(["a"], 7, 0), (["a"], 7, 0)], {}),
        ([(["a"], 7, 0), (["a"], 7, 1), (["a"], 7, 1)], {}),
        ([(["a"], 7, 0), (["b"], 7, 1)], {}),
        ([(["a"], -1, -1), (["a"], 7, 1)], {}),
    ],
)
def test_copies_in_different_epochs_were_sent_again(
    tmp_path: Path, batches: list[Batch], found: dict[str, list[str]]
) -> None:
    assert resent([log_dir(tmp_path, batches)]) == found


def test_a_transactions_records_are_not_sent_again(tmp_path: Path) -> None:
    batches: list[Batch] = [(["a"], 7, 0), (["a"], 7, 1)]
    assert resent([log_dir(tmp_path, batches, transactional=True)]) == {}
