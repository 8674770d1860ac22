"""Makes producer snapshots of entries, with the functions that fill the broker's own rows."""

from collections.abc import Sequence

from storage.producers.entry import ProducerStateEntry
from storage.producers.snapshot import ENTRY_SIZE, HEADER_SIZE, pack_row_into, sealed


def encode_snapshot(entries: Sequence[ProducerStateEntry]) -> bytes:
    """Return the bytes of a snapshot file, with entries in the given order."""
    file = bytearray(HEADER_SIZE + ENTRY_SIZE * len(entries))
    for index, entry in enumerate(entries):
        pack_row_into(file, HEADER_SIZE + ENTRY_SIZE * index, entry)
    return bytes(sealed(file))
