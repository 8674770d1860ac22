"""Half a million producers in a partition: small, quickly found, and gone through in steps."""

import tracemalloc
from random import Random

import pytest

from storage.producers import image, table
from storage.producers.entry import BATCHES_TO_RETAIN, ProducerStateEntry
from storage.producers.image import ProducerImage
from storage.producers.snapshot import decode_snapshot, java_map_order
from storage.producers.table import ProducerTable
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.producer_snapshots import encode_snapshot

NOW = 1_700_000_000_000
BYTES_EACH = 400


def produce(known: ProducerTable, producer_id: int, at: int, *, timestamp: int = NOW) -> None:
    """One more batch of a record."""
    entry = known.at_hand.get(producer_id) or known.fetch(producer_id)
    if entry is None:
        entry = ProducerStateEntry(producer_id)
        known.add(entry)
    entry.add_batch(0, entry.last_sequence + 1, at, at, timestamp)
    known.note_changed(entry)


def filled(count: int, *, batches: int = 1) -> ProducerTable:
    known = ProducerTable()
    at = 10**6
    for _ in range(batches):
        for producer_id in range(count):
            produce(known, producer_id + 10**9, at, timestamp=NOW + at)
            at += 1
    return known


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS", 3)
    monkeypatch.setattr(table, "AT_HAND", 4)


@pytest.mark.parametrize("batches", [1, BATCHES_TO_RETAIN])
def test_a_producer_costs_less_than_400_bytes(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "AT_HAND", 32)  # of half a million, 1024 are as few
    tracemalloc.start()
    try:
        known = filled(5_000, batches=batches)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(known) == 5_000
    assert taken / len(known) < BYTES_EACH
    assert len(known[10**9].batches) == batches


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("seed", range(20))
def test_the_table_says_what_a_dictionary_of_entries_says(seed: int) -> None:
    random = Random(seed)
    known = ProducerTable()
    model: dict[int, ProducerStateEntry] = {}
    for at in range(300):
        producer_id = random.randrange(40)
        match random.randrange(12):
            case 0:
                entry = known.at_hand.get(producer_id) or known.fetch(producer_id)
                if entry is not None:
                    epoch = random.choice((entry.producer_epoch, at))
                    for one in (entry, model[producer_id]):
                        one.end_transaction(epoch, 1, NOW + at + 1)
                    known.note_changed(entry)
            case 1:
                expired = NOW + at - random.randrange(100)
                gone = [one for one in model if model[one].last_timestamp <= expired]
                assert at_once(known.forget(lambda stamp, _: stamp <= expired)) == len(gone)  # noqa: B023
                for one in gone:
                    del model[one]
            case 2:
                again = ProducerTable()
                again.load(known.image().pieces, lambda _, __: False)
                assert list(again) == list(model)
                assert [one.last_batch for one in again.values()] == [
                    one.last_batch and one.last_batch._replace(timestamp=one.last_timestamp)
                    for one in model.values()
                ]
                again._check()
            case _:
                produce(known, producer_id, at, timestamp=NOW + at)
                entry = model.setdefault(producer_id, ProducerStateEntry(producer_id))
                entry.add_batch(0, entry.last_sequence + 1, at, at, NOW + at)
        known._check()
        assert list(known.items()) == list(model.items())


@pytest.mark.usefixtures("tiny")
def test_an_image_stays_as_it_was_taken() -> None:
    known = filled(20)
    taken = known.image()
    before = taken.encode()
    for producer_id in range(30):
        produce(known, producer_id + 10**9, 10**7 + producer_id, timestamp=NOW)
    assert taken.encode() == before
    assert known.image().encode() != before


def test_an_image_copies_nothing() -> None:
    known = filled(20_000)
    known.image()
    tracemalloc.start()
    try:
        taken = known.image()
        assert taken.count == 20_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20_000


def test_forgetting_goes_a_block_at_a_time() -> None:
    known = filled(5 * table.ROWS)
    forgetting = begin(known.forget(lambda _, __: True))
    assert (forgetting.reply, forgetting.pauses) == (5 * table.ROWS, 5)
    assert not known
    assert not known.at_hand


def test_what_is_left_of_blocks_is_put_together() -> None:
    known = filled(8 * table.ROWS)
    kept = set(list(known)[:: table.ROWS // 4])
    stamps = {known[one].last_timestamp for one in kept}
    assert at_once(known.forget(lambda stamp, _: stamp not in stamps)) == 8 * table.ROWS - len(kept)
    known._check()
    assert len(known.image().pieces) == 1
    assert set(known) == kept


def test_producers_may_come_and_go_while_others_are_forgotten() -> None:
    known = filled(4 * table.ROWS)
    forgetting = known.forget(lambda stamp, _: stamp < NOW + 10**9)
    forgetting.send(None)
    produce(known, 7, 10**7, timestamp=NOW + 10**10)
    produce(known, 10**9 + 4 * table.ROWS - 1, 10**7, timestamp=NOW + 10**10)
    forgetting.send(None)
    known.clear()
    at_once(forgetting)
    produce(known, 8, 10**7)
    known._check()
    assert list(known) == [8]


def test_s_fmt_3_few_and_many_are_written_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of a java.util.HashMap, once in Python and once with numpy."""
    random = Random(3)
    for count, largest in ((0, 0), (1, 40), (700, 700), (700, 5000)):
        ids = [random.getrandbits(random.choice((4, 20, 33, 62))) for _ in range(count)]
        entries = {
            one: ProducerStateEntry(one, recent=(at, at * 3, 0, NOW)) for at, one in enumerate(ids)
        }
        taken = ProducerImage(
            [encode_snapshot([entry])[10:] for entry in entries.values()], largest
        )
        monkeypatch.setattr(image, "LARGE", 10**6)
        few = taken.encode()
        monkeypatch.setattr(image, "LARGE", -1)
        assert taken.encode() == few
        order = java_map_order(entries, largest)
        assert [entry.producer_id for entry in decode_snapshot(bytes(few))] == list(order)


def test_an_id_that_stands_twice_in_a_snapshot_counts_once() -> None:
    rows = [
        encode_snapshot([ProducerStateEntry(one, recent=(at, at, 0, NOW), last_timestamp=NOW)])[10:]
        for at, one in enumerate((5, 6, 5))
    ]
    known = ProducerTable()
    known.load(rows, lambda _, __: False)
    known._check()
    assert [(one.producer_id, one.last_sequence) for one in known.values()] == [(5, 2), (6, 1)]
