"""Which modules mypyc compiles: those that a profile of produce, fetch and groups names.

A module here is what its annotations say: an attribute has its type, a value of another type is a
TypeError, and nobody replaces a name in it. `mypyc` has no async generators, a fixed tuple has no
identity, and a class takes no weak references and has no `__slots__` to look at.
"""

from typing import Final

ROOMS: Final = ("config", "protocol", "storage", "broker")
"""What these modules import; a change in one of them may change what is compiled."""

MODULES: Final = (
    "protocol/records/batch.py",
    "protocol/records/header.py",
    "protocol/records/runs.py",
    "protocol/records/record_validation.py",
    "protocol/records/effort.py",
    "protocol/records/value.py",
    "protocol/records/walk.py",
    "protocol/records/varint.py",
    "protocol/records/chain.py",
    "storage/log/appender.py",
    "storage/log/appending.py",
    "storage/log/guard.py",
    "storage/log/index_scan.py",
    "storage/log/looking.py",
    "storage/log/offsets.py",
    "storage/log/reading.py",
    "storage/log/results.py",
    "storage/log/rolling.py",
    "storage/log/segment_files.py",
    "storage/log/segment_indexes.py",
    "storage/log/segments.py",
    "storage/log/store.py",
    "storage/log/validation.py",
    "storage/log/position.py",
    "storage/index/offset_index.py",
    "storage/index/mapped_index.py",
    "storage/index/time_index.py",
    "storage/producers/state.py",
    "storage/producers/analysis.py",
    "storage/producers/entry.py",
    "storage/producers/table.py",
    "storage/waits.py",
    "storage/epochs.py",
    "broker/replication/partition.py",
    "broker/replication/partition_state.py",
    "broker/replication/read_plan.py",
    "broker/replication/replica_manager.py",
    "broker/replication/fetch_session.py",
    "broker/replication/slice_copy.py",
    "broker/request.py",
    "broker/fairness.py",
    "broker/deadlines.py",
    "broker/api/fetch.py",
)
"""Paths in a checkout."""
