"""The last records of producers: the answer is the same for few producers and for many."""

import pickle
from random import Random

import pytest

from storage.producers.entry import ProducerStateEntry
from storage.producers.image import LARGE
from storage.producers.last_records import LastRecords, last_records_in
from storage.producers.table import ProducerTable


def table_of(count: int) -> ProducerTable:
    random, table = Random(count), ProducerTable()
    for producer_id in random.sample(range(10 * count), count):
        entry = ProducerStateEntry(producer_id, producer_epoch=random.randrange(5))
        table.add(entry)
        if random.random() < 0.8:
            last = random.randrange(1000)
            entry.add_batch(entry.producer_epoch, 7, last, last, 1)
            table.note_changed(entry)
    return table


def expected(table: ProducerTable, first: int, end: int) -> dict[int, tuple[int, int]]:
    found = {}
    for producer_id, entry in table.items():
        batch = entry.last_batch
        offset = -1 if batch is None else batch.last_offset
        if first <= offset < end or offset == -1:
            found[producer_id] = (entry.producer_epoch, offset)
    return found


@pytest.mark.parametrize("count", [1, 50, LARGE, LARGE + 1, 6000])
def test_s_cmp_7_those_who_wrote_last_in_the_range_or_nowhere(count: int) -> None:
    table = table_of(count)
    for first, end in ((0, 1000), (300, 400), (0, 0)):
        wanted = expected(table, first, end)
        found = last_records_in(table.image(), first, end)
        assert isinstance(found, LastRecords) == (count > LARGE)
        assert dict(found) == wanted
        assert len(found) == len(wanted)
        again = pickle.loads(pickle.dumps(found))
        assert dict(again) == wanted
        assert all((one in again) == (one in wanted) for one in range(-1, 100))
