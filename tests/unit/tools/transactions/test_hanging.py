"""Open transactions that nobody will end, and markers for them."""

import pytest

from tests.unit.tools.transactions.made import HANGING, NOW, PLACE, known, producer, transaction
from tools.errors import CommandError
from tools.transactions.ending import marker_for
from tools.transactions.hanging import Hangs, open_transactions, silent_for


def test_transactions_that_hang() -> None:
    idle = producer(producer_id=1, start_offset=None)
    nobody = producer(producer_id=2, start_offset=50)
    forgotten = producer(producer_id=3, start_offset=40)
    elsewhere = producer(producer_id=4, start_offset=30)
    alive = producer(producer_id=5)
    names = {3: "gone", 4: "other", 5: "billing"}
    transactions = {"other": transaction(places=(("orders", 1),)), "billing": transaction()}
    opened = open_transactions([idle, nobody, forgotten, elsewhere, alive], names, transactions)
    assert [(each.producer.producer_id, each.hangs) for each in opened] == [
        (5, None),
        (4, Hangs.NOT_IN_TRANSACTION),
        (3, Hangs.NO_ID),
        (2, Hangs.NO_ID),
    ]


def test_a_search_leaves_out_what_may_just_be_beginning() -> None:
    young, old = producer(last_timestamp=NOW - 900_000), producer(last_timestamp=NOW - 900_001)
    idle = producer(start_offset=None, last_timestamp=0)
    assert silent_for([young, old, idle], 900_000, NOW) == [old]


def test_a_marker_is_of_the_producer_and_of_no_later_coordinator() -> None:
    marker = marker_for([HANGING], PLACE, 20, force=False)
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 0)


def test_what_is_not_aborted() -> None:
    with pytest.raises(CommandError, match="open ones begin at: 20"):
        marker_for([HANGING], PLACE, 21, force=False)
    with pytest.raises(CommandError, match=r"does not hang.*--fence billing"):
        marker_for([known()], PLACE, 20, force=False)
    assert marker_for([known()], PLACE, 20, force=True).producer_id == 7
