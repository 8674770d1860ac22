"""The timestamps of batches that are rewritten."""

import numpy as np

from protocol.records.batch import TIMESTAMP_TYPE_BIT
from storage.cleaner.request import CleanRequest
from storage.cleaner.retained import Columns, Flags, Ints, has_delete_horizon


class NewDates:
    """Timestamps of batches that are rewritten; arrays over these batches."""

    __slots__ = ("_batch_base", "_batch_greatest", "_by_log", "horizons")

    def __init__(
        self, batches: Columns, indexes: Ints, new_horizon: Flags, request: CleanRequest
    ) -> None:
        self._batch_base = batches["base_timestamp"][indexes]
        self._batch_greatest = batches["max_timestamp"][indexes]
        self._by_log = (batches["attributes"][indexes] & TIMESTAMP_TYPE_BIT) != 0
        horizons: Ints = np.where(has_delete_horizon(batches)[indexes], self._batch_base, -1)
        horizons[new_horizon[indexes]] = request.new_horizon_ms
        self.horizons = horizons
        """Delete horizons in milliseconds; -1: none."""

    def of_records(self, owners: Ints, deltas: Ints) -> Ints:
        """Timestamps of records, given the index of each one's batch and its delta."""
        dated: Ints = np.where(
            self._by_log[owners], self._batch_greatest[owners], self._batch_base[owners] + deltas
        )
        return dated

    def bases(self, firsts: Ints) -> Ints:
        """The new base timestamps; `firsts` are those of the first records kept."""
        bases: Ints = np.where(self.horizons >= 0, self.horizons, firsts)
        return bases

    def greatest(self, found: Ints) -> Ints:
        """The new max timestamps; `found` are the greatest of the records kept."""
        greatest: Ints = np.where(self._by_log, self._batch_greatest, np.maximum(found, -1))
        return greatest
