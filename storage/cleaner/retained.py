"""Which records and batches a cleaning keeps, and by which rule: columns in, reasons out.

A record (S-CMP-5, S-CMP-6; Kafka's `Cleaner.shouldRetainRecord`), by the first rule that holds:

  a. Its batch is judged as a whole: data of an aborted transaction is dropped, a control record is
     kept or dropped as its marker is.
  b. It lies above the map's latest offset, so its key is not known there: it is kept.
  c. It has no key, which a compacted log cannot have: it is dropped, and counted as invalid.
  d. The map has a later offset of its key: it is dropped.
  e. It has a value: it is kept.
  f. It is a tombstone. It is kept until the delete horizon of its batch has passed (KIP-534); if
     the batch has none yet, it is kept, and the batch gets one. In formats 0 and 1, which have no
     horizon, the last modification of its segment decides.

A batch (Kafka's `MemoryRecords.filterTo`): it is kept unchanged if all its records are kept, it
needs no new horizon, and it is of format 2. It is rewritten if only some are kept, if its first
horizon is set, or if its format is old. If no record is kept it is dropped, unless its header is
still needed: that of the last batch of an active producer gives the next sequence, and without that
of the last batch below the high watermark the log would seem to end earlier.

The cleaner and `explain-cleaner` both use these rules.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protocol.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from storage.cleaner.fates import FATE_OF_RULE, UNOPENED, BatchFate, BatchRule, RecordFate

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
"""Values of one of the enumerations below."""
Columns = Mapping[str, npt.NDArray[Any]]
"""Columns of batches: see `storage.reader.columns.BATCH_COLUMNS`."""


_FATES: Final = np.array(
    [FATE_OF_RULE.get(rule, RecordFate.KEPT_LATEST) for rule in BatchRule], np.uint8
)
"""The fate of records by the number of the rule; the entry of `BY_KEY` is never used."""


class BatchPlan(NamedTuple):
    """Facts about some batches before their records are read; arrays of one length."""

    rules: Codes
    """`BatchRule`."""
    sets_horizon: Flags
    """Whether the batch is a marker whose data is all gone: it gets its delete horizon."""
    if_empty: Codes
    """`BatchFate` of the batch if no record of it is kept."""
    tombstones_stay: Flags
    """Whether tombstones of the batch are too young to be dropped."""

    def part(self, first: int, after: int) -> "BatchPlan":
        """The plan of the batches [first, after)."""
        some = slice(first, after)
        return BatchPlan(
            self.rules[some],
            self.sets_horizon[some],
            self.if_empty[some],
            self.tombstones_stay[some],
        )

    @property
    def is_opened(self) -> Flags:
        """Whether the batch's records have to be read; otherwise all are dropped."""
        opened: Flags = ~np.isin(self.rules, UNOPENED)
        return opened


def tombstones_stay(batches: Columns, now_ms: int, *, legacy_stay: bool) -> Flags:
    """Whether the tombstones of each batch are too young to be dropped (rule f)."""
    has_horizon = has_delete_horizon(batches)
    stay: Flags = ~has_horizon | (now_ms < batches["base_timestamp"])
    stay[batches["magic"] < 2] = legacy_stay
    return stay


def has_delete_horizon(batches: Columns) -> Flags:
    """Whether the base timestamp of each batch is its delete horizon."""
    found: Flags = (batches["attributes"] & DELETE_HORIZON_BIT) != 0
    return found & (batches["magic"] >= 2)


def is_control(batches: Columns) -> Flags:
    """Whether each batch is a control batch."""
    found: Flags = (batches["attributes"] & CONTROL_BIT) != 0
    return found & (batches["magic"] >= 2)


def is_transactional(batches: Columns) -> Flags:
    """Whether each batch is transactional, as control batches are."""
    found: Flags = (batches["attributes"] & TRANSACTIONAL_BIT) != 0
    return found & (batches["magic"] >= 2)


def if_empty(
    batches: Columns, active_producers: Mapping[int, tuple[int, int]], high_watermark: int
) -> Codes:
    """The `BatchFate` of each batch if none of its records is kept.

    `active_producers`: producer id to (epoch, last data offset or -1).
    """
    found = np.full(len(batches["base_offset"]), BatchFate.GONE, np.uint8)
    found[batches["last_offset"] + 1 == high_watermark] = BatchFate.EMPTIED_FOR_OFFSET
    if not active_producers:
        return found
    ids, epochs, last = batches["producer_id"], batches["producer_epoch"], batches["last_offset"]
    control = is_control(batches)
    for index in np.flatnonzero(ids >= 0).tolist():
        known = active_producers.get(int(ids[index]))
        if known is None:
            continue
        epoch, last_data = known
        if (
            last_data == last[index]
            if last_data >= 0
            else control[index] and epoch == epochs[index]
        ):
            found[index] = BatchFate.EMPTIED_FOR_PRODUCER
    return found


def decide_records(
    *,
    rules: Codes,
    tombstones_stay: Flags,
    offsets: Ints,
    has_key: Flags,
    has_value: Flags,
    latest: Ints,
    map_end: int,
) -> Codes:
    """The `RecordFate` of each record, by the rules of the module docstring.

    `rules` and `tombstones_stay` are those of the record's batch; `latest` is the map's offset of
    its key (-1 if it has none, or no key), `map_end` the map's latest offset.
    """
    fates = np.where(
        has_value,
        np.uint8(RecordFate.KEPT_LATEST),
        np.where(
            tombstones_stay,
            np.uint8(RecordFate.KEPT_TOMBSTONE),
            np.uint8(RecordFate.DROPPED_TOMBSTONE),
        ),
    )
    fates[offsets < latest] = RecordFate.DROPPED_OLDER
    fates[~has_key] = RecordFate.DROPPED_NO_KEY
    fates[offsets > map_end] = RecordFate.KEPT_ABOVE_MAP
    judged = rules != BatchRule.BY_KEY
    if judged.any():
        fates[judged] = _FATES[rules[judged]]
    return fates


def stays(fates: Codes) -> Flags:
    """Whether each record is kept."""
    kept: Flags = fates < RecordFate.DROPPED_OLDER
    return kept


class BatchVerdicts(NamedTuple):
    """The fates of some batches; arrays of one length."""

    fates: Codes
    """`BatchFate`."""
    new_horizon: Flags
    """Whether a rewritten batch gets a delete horizon now."""


def decide_batches(
    batches: Columns, plan: BatchPlan, owners: Ints, kept: Flags, has_value: Flags
) -> BatchVerdicts:
    """The fate of each batch, given which of its records are `kept`.

    `owners` is the index of each record's batch; records of batches that are not opened
    (`BatchPlan.is_opened`) may be left out.
    """
    count = len(plan.rules)
    staying = np.bincount(owners[kept], minlength=count)
    tombstones = np.bincount(owners[kept & ~has_value], minlength=count) > 0
    new_horizon: Flags = (
        (tombstones | plan.sets_horizon) & (staying > 0) & ~has_delete_horizon(batches)
    )
    all_stay = (staying == batches["record_count"]) & (batches["magic"] >= 2)
    fates = np.where(
        all_stay & ~new_horizon, np.uint8(BatchFate.KEPT_WHOLE), np.uint8(BatchFate.REWRITTEN)
    )
    empty = staying == 0
    fates[empty] = plan.if_empty[empty]
    return BatchVerdicts(fates, new_horizon)
