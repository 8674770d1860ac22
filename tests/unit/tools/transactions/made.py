"""Producers and transactions for tests."""

from typing import Any

from tools.transactions.hanging import Open
from tools.transactions.survey import Producer, Transaction

PLACE = ("orders", 0)
NOW = 1_700_000_000_000


def producer(**fields: Any) -> Producer:
    """With a transaction that is open at 20."""
    usual: dict[str, Any] = {
        "place": PLACE,
        "producer_id": 7,
        "producer_epoch": 3,
        "coordinator_epoch": -1,
        "last_sequence": 0,
        "last_timestamp": NOW - 1000,
        "start_offset": 20,
    }
    return Producer(**{**usual, **fields})


def transaction(**fields: Any) -> Transaction:
    """That goes on for ten seconds, of sixty."""
    usual: dict[str, Any] = {
        "transactional_id": "billing",
        "state": "Ongoing",
        "coordinator": 2,
        "producer_id": 7,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "start_ms": NOW - 10_000,
        "places": (PLACE,),
    }
    return Transaction(**{**usual, **fields})


def known(**fields: Any) -> Open:
    """An open transaction that its coordinator knows."""
    return Open(producer=producer(), transactional_id="billing", transaction=transaction(**fields))


HANGING = Open(producer=producer(), transactional_id=None, transaction=None)
